#include <baton/locks.h>
#include <baton/observe.h>

int main() {
  baton::StoreCounters counters;
  counters.count({});
  return counters.calls() == 1 && baton::describe({}).size() > 0 ? 0 : 1;
}
