#include <baton/locks.h>

int main() {
  auto locks = baton::open("memory:");
  return locks && locks->acquire({.subject = "one"}) ? 0 : 1;
}
