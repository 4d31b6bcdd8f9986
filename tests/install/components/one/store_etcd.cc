#include <baton/etcd_store.h>

int main() {
  return baton::open_etcd_store("etcd://[", baton::system_clock().now() + std::chrono::seconds(5))
             ? 1
             : 0;
}
