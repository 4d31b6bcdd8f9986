#pragma once

// Whether JSON is as a schema says. Written by hand because Debian 12 has no validator for C++, and
// python3-jsonschema would be a process an answer. It knows the words of JSON Schema 2020-12 that
// the documents in apps/ use:
//
//   $ref (#/…)  type  const  enum  properties  required  additionalProperties  items  oneOf
//   minLength  maxLength  pattern  minimum  maximum  minItems  maxItems
//   and without effect: title, description, default, examples
//
// Any other word is an error, so that no schema promises what nobody checks.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace baton::test {

// What is wrong with `value`, a line each with its place; empty: nothing. References are looked up
// in `document`.
[[nodiscard]] std::vector<std::string> schema_violations(const nlohmann::json& document,
                                                         const nlohmann::json& schema,
                                                         const nlohmann::json& value);

// What `node` means: itself, or what its $ref names. Throws if there is no such thing.
[[nodiscard]] const nlohmann::json& resolve(const nlohmann::json& document,
                                            const nlohmann::json& node);

}  // namespace baton::test
