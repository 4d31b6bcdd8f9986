#include "store/etcd/etcd_error.h"

#include <algorithm>
#include <cctype>

namespace baton::store::etcd {
namespace {

// gRPC's own numbers.
enum Status {
  kInvalidArgument = 3,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

constexpr std::string_view kFull = "space exceeded";

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// etcd's texts name keys and leases, never a password; only their length is unbounded.
std::string shortened(const std::string& text) {
  std::string out = text.substr(0, 200);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  return out;
}

// Another member gives the same answer, and so does this one tomorrow. All other numbers are for a
// member or a connection that cannot serve right now: no leader or another one, a server that
// stops, a queue that is full, a gateway whose connection is closing.
bool is_final(const wire::Problem& problem) {
  switch (problem.code) {
    case kInvalidArgument:
    case kNotFound:
    case kAlreadyExists:
    case kOutOfRange:
    case kUnimplemented:
    case kDataLoss: return true;
    default: return false;
  }
}

// Whether etcd checks this before it changes anything. Not the space quota: a member that finds it
// used up while it carries out a transaction carries it out, and complains then.
bool certainly_refused(const wire::Problem& problem) {
  switch (problem.code) {
    case kInvalidArgument:
    case kNotFound:
    case kPermissionDenied:
    case kFailedPrecondition:
    case kUnauthenticated: return true;
    default: return has(problem.message, "too many requests") || must_log_in(problem);
  }
}

}  // namespace

// The revision: a token that is a JWT ends whenever users or roles change.
bool must_log_in(const wire::Problem& problem) {
  return problem.code == kUnauthenticated || has(problem.message, "invalid auth token") ||
         has(problem.message, "user name is empty") ||
         has(problem.message, "revision of auth store is old");
}

bool is_lease_gone(const wire::Problem& problem) {
  return problem.code == kNotFound || has(problem.message, "requested lease not found");
}

bool is_too_large(const wire::Problem& problem) {
  return has(problem.message, "too large") || has(problem.message, "too many operations") ||
         has(problem.message, "larger than max");
}

bool is_full(const Error& error) { return has(error.message, kFull); }

Error error_for(const wire::Problem& problem, int http_status, bool writes) {
  Error error{.code = Code::unavailable,
              .message = "etcd: " + shortened(problem.message),
              .in_doubt = writes && !certainly_refused(problem)};
  if (problem.code == kPermissionDenied) {
    error.code = Code::unauthorized;
    error.message += ": the user needs the role to read and write below the prefix";
  } else if (must_log_in(problem) || has(problem.message, "authentication failed") ||
             has(problem.message, "authentication is not enabled")) {
    error.code = Code::unauthorized;
  } else if (is_final(problem) && http_status != 502 && http_status != 503 && http_status != 504) {
    error.code = Code::bad_store;
  } else {
    error.retryable = true;
  }
  if (has(problem.message, kFull)) {
    error.message += ": compact, defragment and disarm the alarm, or raise the quota";
  }
  return error;
}

}  // namespace baton::store::etcd
