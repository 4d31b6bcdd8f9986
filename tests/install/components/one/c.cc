#include <baton/baton.h>

int main() {
  baton_client* client = nullptr;
  baton_error error = BATON_ERROR_INIT;
  if (baton_open("memory:", nullptr, &client, &error) != BATON_OK) return 1;
  baton_lease* lease = nullptr;
  const int code = baton_acquire(client, "report", nullptr, &lease, &error);
  baton_lease_free(lease, nullptr);
  baton_close(client, nullptr);
  return code;
}
