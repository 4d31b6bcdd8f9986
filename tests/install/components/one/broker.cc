#include <baton/broker.h>

int main() { return baton::Broker::open("nothing:") ? 1 : 0; }
