#include <baton/clock.h>

int main() { return baton::system_clock().now() > baton::Instant() ? 0 : 1; }
