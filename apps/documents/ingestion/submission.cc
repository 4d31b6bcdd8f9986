#include "apps/documents/ingestion/submission.h"

#include <algorithm>
#include <array>

#include "apps/documents/common/work.h"

namespace baton::documents::ingestion {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 6> kFields = {"title",      "contentType", "content",
                                                     "contentUrl", "metadata",    "owner"};

// PostgreSQL cannot store NUL, and no log or terminal should get the others.
bool has_control(std::string_view text, bool lines_allowed) {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    if (lines_allowed && (c == '\n' || c == '\r' || c == '\t' || c == '\f')) return false;
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

class Reader {
 public:
  explicit Reader(const json& body) : body_(body) {}

  std::string text(const char* field, std::size_t most, bool required, bool lines_allowed = false) {
    const auto found = body_.find(field);
    if (found == body_.end()) {
      if (required) wrong(field, "is required");
      return {};
    }
    if (!found->is_string()) return wrong(field, "must be text"), "";
    std::string value = found->get<std::string>();
    if (value.size() > most) wrong(field, "has more than " + std::to_string(most) + " bytes");
    if (has_control(value, lines_allowed)) wrong(field, "has control characters");
    return value;
  }

  json metadata() {
    const auto found = body_.find("metadata");
    if (found == body_.end()) return json::object();
    if (!found->is_object()) return wrong("metadata", "must be an object"), json::object();
    for (const auto& [name, value] : found->items()) {
      const bool text = value.is_string();
      if (errors.size() >= kMostErrors) break;
      if (name.empty() || has_control(name, false) ||
          (text && has_control(value.get_ref<const std::string&>(), true))) {
        wrong("metadata", "has an empty name or control characters");
      } else if (!text && !value.is_number() && !value.is_boolean()) {
        errors.push_back({"/metadata" + pointer_to(name), "must be text, a number or a boolean"});
      }
    }
    if (dump(*found).size() > kMaxMetadata) {
      wrong("metadata", "has more than " + std::to_string(kMaxMetadata) + " bytes");
    }
    return *found;
  }

  void no_others() {
    for (const auto& [name, value] : body_.items()) {
      if (errors.size() >= kMostErrors) break;
      if (std::find(kFields.begin(), kFields.end(), name) == kFields.end()) {
        wrong(name, "there is no such field");
      }
    }
  }

  void wrong(const std::string& field, std::string what) {
    errors.push_back({pointer_to(field), std::move(what)});
  }
  [[nodiscard]] bool has(const char* field) const { return body_.contains(field); }

  std::vector<FieldProblem> errors;

 private:
  const json& body_;
};

}  // namespace

json Submission::payload() const {
  json payload = {
      {"title", title}, {"contentType", content_type}, {"owner", owner}, {"metadata", metadata}};
  if (content_url.empty()) {
    payload["content"] = content;
  } else {
    payload["contentUrl"] = content_url;
  }
  return payload;
}

std::variant<Submission, Refused> parse_submission(std::string_view text) {
  const json body = parse_json(text);
  if (!body.is_object()) {
    return Refused{.status = 400,
                   .detail = "the body is not a JSON object, or is nested too deeply"};
  }
  Reader read(body);
  Submission submission{.title = read.text("title", kMaxText, true),
                        .content_type = read.text("contentType", kMaxText, true),
                        .owner = read.text("owner", kMaxText, true),
                        .content = read.text("content", kMaxContent, false, true),
                        .content_url = read.text("contentUrl", kMaxUrl, false),
                        .metadata = read.metadata()};
  read.no_others();
  if (read.has("content") == read.has("contentUrl")) {
    read.wrong("content", "exactly one of content and contentUrl is needed");
  }
  if (submission.owner.empty() && read.has("owner")) read.wrong("owner", "is empty");
  if (submission.content_url.empty() && read.has("contentUrl"))
    read.wrong("contentUrl", "is empty");
  if (read.errors.empty()) return submission;
  return Refused{.detail = "the document cannot be stored", .errors = std::move(read.errors)};
}

}  // namespace baton::documents::ingestion
