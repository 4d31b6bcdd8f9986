#include "sql/schema.h"

namespace baton::sql {

Error not_installed(const Schema& schema, const std::string& what) {
  return {.code = Code::bad_store,
          .message = what + "; make it with: " + std::string(schema.install_command)};
}

Error made_by_newer(const Schema& schema, std::int64_t version) {
  return {.code = Code::bad_store,
          .message = "the " + std::string(schema.name) + " was made by a newer Baton (version " +
                     std::to_string(version) + " of its tables; this one knows " +
                     std::to_string(schema.version) + "): use that one"};
}

}  // namespace baton::sql
