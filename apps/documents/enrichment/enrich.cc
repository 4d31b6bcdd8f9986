#include "apps/documents/enrichment/enrich.h"

#include <algorithm>
#include <array>
#include <map>

#include "core/sha256.h"

namespace baton::documents::enrichment {
namespace {

using Words = std::vector<std::string>;

constexpr std::size_t kMostKeywords = 5;
constexpr std::size_t kKeywordLength = 5;  // bytes, at least

struct Language {
  std::string_view name;
  std::array<std::string_view, 8> words;  // that hardly any longer text is without
};
constexpr std::array<Language, 4> kLanguages = {{
    {"en", {"the", "and", "of", "to", "is", "for", "with", "that"}},
    {"de", {"der", "die", "und", "das", "ist", "nicht", "mit", "ein"}},
    {"fr", {"le", "la", "les", "et", "est", "une", "pour", "dans"}},
    {"es", {"el", "los", "y", "es", "una", "para", "con", "que"}},
}};

struct Class {
  std::string_view name;
  std::array<std::string_view, 4> words;
};
constexpr std::array<Class, 4> kClasses = {{
    {"invoice", {"invoice", "amount", "payment", "total"}},
    {"contract", {"contract", "agreement", "party", "parties"}},
    {"report", {"report", "summary", "results", "analysis"}},
    {"letter", {"dear", "sincerely", "regards", "yours"}},
}};

// Runs of letters and digits, in lower case; bytes beyond ASCII count as letters.
Words words_of(std::string_view text) {
  Words words;
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      word += c;
    } else if (c >= 'A' && c <= 'Z') {
      word += static_cast<char>(c + ('a' - 'A'));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

// The first of those whose words occur most often; empty if none occurs.
template <typename Choices>
std::string_view best(const Choices& choices, const Words& words) {
  std::string_view found;
  std::ptrdiff_t most = 0;
  for (const auto& choice : choices) {
    const auto hits = std::count_if(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(choice.words.begin(), choice.words.end(), word) != choice.words.end();
    });
    if (hits > most) {
      most = hits;
      found = choice.name;
    }
  }
  return found;
}

std::string classify(const std::string& content_type, const Words& title, const Words& words) {
  if (const auto found = best(kClasses, title); !found.empty()) return std::string(found);
  if (const auto found = best(kClasses, words); !found.empty()) return std::string(found);
  return content_type.starts_with("application/json") ? "data" : "other";
}

// By frequency, then alphabetically.
Words keywords_of(const Words& words) {
  std::map<std::string, int> counts;
  for (const std::string& word : words) {
    if (word.size() >= kKeywordLength) ++counts[word];
  }
  std::vector<std::pair<std::string, int>> by_count(counts.begin(), counts.end());
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Words keywords;
  for (const auto& [word, count] : by_count) {
    if (keywords.size() == kMostKeywords) break;
    keywords.push_back(word);
  }
  return keywords;
}

}  // namespace

Enrichment enrich(const nlohmann::json& document) {
  const std::string content = document.value("content", "");
  const Words words = words_of(content);
  const auto language = best(kLanguages, words);
  return {.classification = classify(document.value("contentType", ""),
                                     words_of(document.value("title", "")), words),
          .language = language.empty() ? "und" : std::string(language),
          .word_count = words.size(),
          .keywords = keywords_of(words),
          .checksum = "sha256:" +
                      core::sha256(content.empty() ? document.value("contentUrl", "") : content)};
}

}  // namespace baton::documents::enrichment
