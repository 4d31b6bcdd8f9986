#include "support/json_schema.h"

#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <stdexcept>

namespace baton::test {
namespace {

using nlohmann::json;

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// A number without a fraction is an integer, however it is written.
bool is_of_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type != "integer") throw std::invalid_argument("there is no type " + type);
  return value.is_number_integer() ||
         (value.is_number_float() &&
          value.get<double>() ==
              static_cast<double>(static_cast<std::int64_t>(value.get<double>())));
}

class Validator {
 public:
  explicit Validator(const json& document) : document_(document) {}

  void check(const json& schema, const json& value, const std::string& place) {
    for (const auto& [word, wanted] : schema.items()) {
      const auto known = kWords.find(word);
      if (known == kWords.end()) throw std::invalid_argument("the schema says " + word);
      if (known->second != nullptr) (this->*known->second)({schema, wanted, value, place});
    }
  }

  std::vector<std::string> wrong;

 private:
  struct Look {
    const json& schema;
    const json& wanted;
    const json& value;
    const std::string& place;
  };
  using Word = void (Validator::*)(const Look&);
  static const std::map<std::string, Word> kWords;

  void expect(bool holds, const Look& at, const std::string& what) {
    if (holds) return;
    std::string shown = at.value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (shown.size() > 200) shown = shown.substr(0, 200) + "…";
    wrong.push_back((at.place.empty() ? "/" : at.place) + " " + what + ": " + shown);
  }

  void reference(const Look& at) { check(resolve(document_, at.schema), at.value, at.place); }

  void type(const Look& at) {
    const json types = at.wanted.is_array() ? at.wanted : json::array({at.wanted});
    expect(std::any_of(types.begin(), types.end(),
                       [&](const json& one) { return is_of_type(at.value, one); }),
           at, "is not " + at.wanted.dump());
  }
  void constant(const Look& at) { expect(at.value == at.wanted, at, "is not " + at.wanted.dump()); }
  void choice(const Look& at) {
    expect(std::find(at.wanted.begin(), at.wanted.end(), at.value) != at.wanted.end(), at,
           "is not one of " + at.wanted.dump());
  }

  void properties(const Look& at) {
    if (!at.value.is_object()) return;
    for (const auto& [name, schema] : at.wanted.items()) {
      if (at.value.contains(name)) check(schema, at.value.at(name), at.place + "/" + name);
    }
  }
  void required(const Look& at) {
    if (!at.value.is_object()) return;
    for (const std::string name : at.wanted) {
      expect(at.value.contains(name), at, "has no " + name);
    }
  }
  void others(const Look& at) {
    if (!at.value.is_object()) return;
    const json known = at.schema.value("properties", json::object());
    for (const auto& [name, member] : at.value.items()) {
      if (known.contains(name)) continue;
      if (at.wanted.is_boolean()) {
        expect(at.wanted.get<bool>(), at, "has the unknown " + name);
      } else {
        check(at.wanted, member, at.place + "/" + name);
      }
    }
  }

  void items(const Look& at) {
    if (!at.value.is_array()) return;
    for (std::size_t i = 0; i < at.value.size(); ++i) {
      check(at.wanted, at.value[i], at.place + "/" + std::to_string(i));
    }
  }
  void one_of(const Look& at) {
    const auto fits = std::count_if(at.wanted.begin(), at.wanted.end(), [&](const json& schema) {
      return schema_violations(document_, schema, at.value).empty();
    });
    expect(fits == 1, at, "fits " + std::to_string(fits) + " of " + at.wanted.dump());
  }

  void min_length(const Look& at) {
    if (at.value.is_string())
      expect(characters(at.value) >= at.wanted.get<std::size_t>(), at, "is too short");
  }
  void max_length(const Look& at) {
    if (at.value.is_string())
      expect(characters(at.value) <= at.wanted.get<std::size_t>(), at, "is too long");
  }
  void pattern(const Look& at) {
    if (!at.value.is_string()) return;
    expect(std::regex_search(at.value.get<std::string>(), std::regex(at.wanted.get<std::string>())),
           at, "does not match " + at.wanted.dump());
  }
  void minimum(const Look& at) {
    if (at.value.is_number()) expect(at.value >= at.wanted, at, "is too small");
  }
  void maximum(const Look& at) {
    if (at.value.is_number()) expect(at.value <= at.wanted, at, "is too large");
  }
  void min_items(const Look& at) {
    if (at.value.is_array())
      expect(at.value.size() >= at.wanted.get<std::size_t>(), at, "has too few items");
  }
  void max_items(const Look& at) {
    if (at.value.is_array())
      expect(at.value.size() <= at.wanted.get<std::size_t>(), at, "has too many items");
  }

  const json& document_;
};

const std::map<std::string, Validator::Word> Validator::kWords = {
    {"$ref", &Validator::reference},
    {"type", &Validator::type},
    {"const", &Validator::constant},
    {"enum", &Validator::choice},
    {"properties", &Validator::properties},
    {"required", &Validator::required},
    {"additionalProperties", &Validator::others},
    {"items", &Validator::items},
    {"oneOf", &Validator::one_of},
    {"minLength", &Validator::min_length},
    {"maxLength", &Validator::max_length},
    {"pattern", &Validator::pattern},
    {"minimum", &Validator::minimum},
    {"maximum", &Validator::maximum},
    {"minItems", &Validator::min_items},
    {"maxItems", &Validator::max_items},
    {"title", nullptr},
    {"description", nullptr},
    {"default", nullptr},
    {"examples", nullptr},
};

}  // namespace

std::vector<std::string> schema_violations(const json& document, const json& schema,
                                           const json& value) {
  Validator validator(document);
  validator.check(schema, value, "");
  return std::move(validator.wrong);
}

const json& resolve(const json& document, const json& node) {
  if (!node.is_object() || !node.contains("$ref")) return node;
  const std::string reference = node.at("$ref");
  if (!reference.starts_with("#/")) throw std::invalid_argument("cannot follow " + reference);
  return resolve(document, document.at(json::json_pointer(reference.substr(1))));
}

}  // namespace baton::test
