#include "relay/snapshot.h"

#include <gtest/gtest.h>

namespace baton::relay {
namespace {

// All snapshots of transactions 1 to 4.
std::vector<Snapshot> snapshots() {
  std::vector<Snapshot> all;
  for (Xid xmax = 1; xmax <= 5; ++xmax) {
    for (unsigned running = 0; running < (1U << (xmax - 1)); ++running) {
      Snapshot one{.xmin = xmax, .xmax = xmax};
      for (Xid xid = 1; xid < xmax; ++xid) {
        if ((running >> (xid - 1) & 1U) != 0) one.xip.push_back(xid);
      }
      if (!one.xip.empty()) one.xmin = one.xip.front();
      all.push_back(one);
    }
  }
  return all;
}

TEST(Snapshot, what_two_have_in_common_is_what_both_show) {
  for (const Snapshot& a : snapshots()) {
    for (const Snapshot& b : snapshots()) {
      const Snapshot both = a.common(b);
      for (Xid xid = 1; xid <= 6; ++xid) {
        EXPECT_EQ(both.shows(xid), a.shows(xid) && b.shows(xid))
            << a.text() << " and " << b.text() << ": " << both.text() << ", " << xid;
      }
      EXPECT_EQ(Snapshot::parse(both.text()), both) << both.text();
    }
  }
}

TEST(Snapshot, is_written_as_the_server_does) {
  EXPECT_EQ((Snapshot{.xmin = 10, .xmax = 20, .xip = {10, 14, 15}}).text(), "10:20:10,14,15");
  EXPECT_EQ(Snapshot::parse("7:7:"), (Snapshot{.xmin = 7, .xmax = 7}));
  for (const char* const text : {"", "7", "7:7", "7:9:8,7", "7:9:x"}) {
    EXPECT_EQ(Snapshot::parse(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace baton::relay
