#include "apps/documents/validation/rules.h"

#include <algorithm>
#include <array>

namespace baton::documents::validation {
namespace {

constexpr std::array<std::string_view, 5> kContentTypes = {
    "text/plain", "text/markdown", "text/html", "application/json", "application/pdf"};
constexpr std::array<std::string_view, 3> kForbiddenWords = {"confidential", "malware", "passwd"};
constexpr std::size_t kMaxTitle = 200;           // characters
constexpr std::size_t kMaxContent = 200 * 1024;  // bytes
constexpr std::string_view kTextTypes = "text/";

std::string text(const nlohmann::json& document, const char* field) {
  const auto found = document.find(field);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f") == std::string_view::npos;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

// "text/plain; charset=utf-8" is text/plain.
std::string media_type(const std::string& content_type) {
  std::string type = lower(content_type.substr(0, content_type.find(';')));
  type.erase(type.find_last_not_of(' ') + 1);
  return type;
}

}  // namespace

std::vector<BrokenRule> broken_rules(const nlohmann::json& document) {
  std::vector<BrokenRule> broken;
  const auto rule = [&](bool kept, std::string code, std::string message) {
    if (!kept) broken.push_back({std::move(code), std::move(message)});
  };
  const std::string title = text(document, "title");
  const std::string content = text(document, "content");
  const std::string url = text(document, "contentUrl");
  const std::string type = media_type(text(document, "contentType"));

  rule(!is_blank(title), "title-missing", "a document needs a title");
  rule(characters(title) <= kMaxTitle, "title-too-long", "a title has at most 200 characters");
  rule(!is_blank(text(document, "owner")), "owner-missing", "a document needs an owner");
  rule(std::find(kContentTypes.begin(), kContentTypes.end(), type) != kContentTypes.end(),
       "content-type-unsupported", "this content type is not taken");
  rule(!url.empty() || !is_blank(content), "content-missing", "a document needs content");
  rule(content.size() <= kMaxContent, "content-too-large", "content has at most 200 KiB");
  rule(url.empty() || url.starts_with("https://"), "content-url-insecure",
       "content is fetched by https:// only");
  if (type == "application/json" && url.empty() && !is_blank(content)) {
    rule(!parse_json(content).is_discarded(), "content-malformed", "the content is not JSON");
  }
  if (type.starts_with(kTextTypes)) {
    const std::string words = lower(title + "\n" + content);
    for (const std::string_view forbidden : kForbiddenWords) {
      rule(words.find(forbidden) == std::string::npos, "forbidden-word",
           "the word '" + std::string(forbidden) + "' is not allowed");
    }
  }
  return broken;
}

}  // namespace baton::documents::validation
