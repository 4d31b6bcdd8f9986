#include "policy/yaml.h"

#include <sstream>
#include <unordered_set>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "baton/name.h"

namespace baton::policy {
namespace {

// Thrown through the parser, whose only way to stop early is an exception; caught below.
struct Refused {
  int line;
  std::string message;
};

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

// Builds the tree from the parser's events: the library's own tree would follow aliases and take
// any nesting before we could look.
class TreeBuilder final : public YAML::EventHandler {
 public:
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (seen_) throw Refused{line_of(mark), "a second document begins; there may be only one"};
    seen_ = true;
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(node(mark, anchor, YamlNode::Kind::none));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw Refused{line_of(mark), "aliases (*name) are not supported; write it out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    // An unquoted null is "~" here, a quoted one has the tag "!".
    const bool none = tag != "!" && (value == "~" || value == "null");
    YamlNode text = node(mark, anchor, none ? YamlNode::Kind::none : YamlNode::Kind::text);
    if (!none) text.text = value;
    add(std::move(text));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    refuse_tag(mark, tag);
    open(node(mark, anchor, YamlNode::Kind::list));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuse_tag(mark, tag);
    open(node(mark, anchor, YamlNode::Kind::map));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    YamlNode node;
    YamlNode key;
    bool has_key = false;
    std::unordered_set<std::string> keys;
  };

  static YamlNode node(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (anchor != YAML::NullAnchor) {
      throw Refused{line_of(mark), "anchors (&name) are not supported; write it out"};
    }
    YamlNode made;
    made.kind = kind;
    made.line = line_of(mark);
    return made;
  }

  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{line_of(mark), "tags (!name) are not supported"};
    }
  }

  void open(YamlNode made) {
    if (open_.size() >= kMaxYamlDepth) throw Refused{made.line, "nested too deeply"};
    open_.push_back({std::move(made), {}, false, {}});
  }

  void close() {
    YamlNode done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }

  void add(YamlNode made) {
    if (open_.empty()) {
      root_ = std::move(made);
      return;
    }
    Open& into = open_.back();
    if (into.node.kind == YamlNode::Kind::list) {
      into.node.items.push_back(std::move(made));
    } else if (into.has_key) {
      made.key = std::move(into.key.text);
      made.key_line = into.key.line;
      into.node.items.push_back(std::move(made));
      into.has_key = false;
    } else {
      if (made.kind != YamlNode::Kind::text) throw Refused{made.line, "a key must be text"};
      if (!into.keys.insert(made.text).second) {
        throw Refused{made.line, "the key '" + made.text + "' is given twice"};
      }
      into.key = std::move(made);
      into.has_key = true;
    }
  }

  YamlNode root_;
  std::vector<Open> open_;
  bool seen_ = false;
};

}  // namespace

Error yaml_error(int line, std::string message) {
  // Keys are repeated in messages, and a message is one line.
  for (char& c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return {.code = Code::bad_request,
          .message = "line " + std::to_string(line) + ": " + std::move(message)};
}

std::string_view kind_name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::none: return "nothing";
    case YamlNode::Kind::text: return "text";
    case YamlNode::Kind::list: return "a list";
    case YamlNode::Kind::map: return "a map";
  }
  return "nothing";
}

Result<YamlNode> read_yaml(std::string_view document) {
  if (document.size() > kMaxYamlBytes) {
    return Error{.code = Code::bad_request,
                 .message = "the document has " + std::to_string(document.size()) +
                            " bytes, at most " + std::to_string(kMaxYamlBytes) + " are allowed"};
  }
  if (!is_valid_utf8_text(document)) {
    return Error{.code = Code::bad_request, .message = "the document is not UTF-8 text"};
  }
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(document)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return yaml_error(refused.line, refused.message);
  } catch (const YAML::Exception& problem) {
    return yaml_error(line_of(problem.mark), "not YAML: " + problem.msg);
  }
  return builder.take();
}

}  // namespace baton::policy
