#include "fuzz.h"
#include "store/kubernetes/cluster.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using baton::fuzz::promise;
  const auto cluster =
      baton::store::kubernetes::read_kubeconfig(baton::fuzz::text_of(data, size), "/none", "");
  if (cluster) {
    promise(!cluster->address.empty(), "a cluster has an address");
  } else {
    promise(cluster.error().message.find('\n') == std::string::npos, "a refusal is one line");
  }
  return 0;
}
