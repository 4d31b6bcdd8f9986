#include <baton/partitions.h>

int main() { return baton::partition_lock("orders", 3) ? 0 : 1; }
