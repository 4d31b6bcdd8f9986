#include "store/kubernetes/object_name.h"

#include "core/sha256.h"

namespace baton::store::kubernetes {

std::string object_name(std::string_view key) { return "baton-" + core::sha256(key).substr(0, 40); }

}  // namespace baton::store::kubernetes
