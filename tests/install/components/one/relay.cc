#include <baton/relay.h>

int main() {
  baton::Result<void> (baton::Relay::*start)() = &baton::Relay::start;
  return start != nullptr ? 0 : 1;
}
