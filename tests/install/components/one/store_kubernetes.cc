#include <baton/kubernetes_store.h>

int main() {
  return baton::open_kubernetes_store("k8s://?kubeconfig=/nonexistent",
                                      baton::system_clock().now() + std::chrono::seconds(5))
             ? 1
             : 0;
}
