#include "sql/component.h"

namespace baton::sql {

Error not_installed(const Component& component, const std::string& what) {
  return {.code = Code::bad_store,
          .message = what + "; make it with: " + std::string(component.install_command)};
}

Error made_by_newer(const Component& component, std::int64_t version) {
  return {.code = Code::bad_store,
          .message = std::string(component.title) + " was made by a newer Baton (version " +
                     std::to_string(version) + " of its tables; this one knows " +
                     std::to_string(component.version) + "): use that one"};
}

}  // namespace baton::sql
