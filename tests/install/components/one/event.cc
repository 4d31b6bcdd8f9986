#include <baton/event.h>

int main() { return baton::is_event_id(baton::make_event_id()) ? 0 : 1; }
