#include "baton/result.h"

namespace baton {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::bad_name: return "bad_name";
    case Code::bad_request: return "bad_request";
    case Code::bad_url: return "bad_url";
    case Code::busy: return "busy";
    case Code::timed_out: return "timed_out";
    case Code::superseded: return "superseded";
    case Code::denied: return "denied";
    case Code::deadlock: return "deadlock";
    case Code::lost: return "lost";
    case Code::unsupported: return "unsupported";
    case Code::unavailable: return "unavailable";
    case Code::cancelled: return "cancelled";
    case Code::fenced: return "fenced";
    case Code::bad_store: return "bad_store";
    case Code::unauthorized: return "unauthorized";
  }
  return "unknown";
}

}  // namespace baton
