#include "baton/store_admin.h"

namespace baton {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::advice: return "advice";
    case Severity::warning: return "warning";
    case Severity::danger: return "danger";
  }
  return "unknown";
}

}  // namespace baton
