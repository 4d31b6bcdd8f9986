#include <baton/elector.h>

int main() { return baton::election_lock("billing") ? 0 : 1; }
