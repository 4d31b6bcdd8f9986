#pragma once

// What can be told from a document alone. Pure: the same document always gives the same.

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace baton::documents::enrichment {

struct Enrichment {
  std::string classification;  // invoice, contract, report, letter, data or other
  std::string language;        // en, de, fr, es, or und
  std::size_t word_count = 0;
  std::vector<std::string> keywords;  // the most frequent words of some length, at most 5
  std::string checksum;               // sha256:… of the content, or of its URL
  bool operator==(const Enrichment&) const = default;
};

// `document` is the payload of DocumentValidated. Content behind a URL is not fetched: its
// language is und, and it has no words.
[[nodiscard]] Enrichment enrich(const nlohmann::json& document);

}  // namespace baton::documents::enrichment
