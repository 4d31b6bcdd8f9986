// The words of baton partition.

#include "cli/options_build.h"

namespace baton::cli {

void add_partition(Command& root, Arguments& all) {
  auto noun = root.add_noun("partition", "See how sets of partitions are divided",
                            "  baton partition list relay/shop");
  auto list = noun.add_command("list", "List partitions with their owners, and the members",
                               "  baton partition list\n"
                               "  baton partition list relay/shop --json");
  list.add("SET", all.partition.set, "Only this set, as relay/shop").type("");
  add_common(list, all);
  does(list, all, partition_list, all.partition);
}

}  // namespace baton::cli
