#include <baton/memory_store.h>

int main() { return baton::make_memory_store() ? 0 : 1; }
