#include <baton/node.h>

int main() {
  baton::Result<baton::Node> (*join)(baton::LockClient, baton::NodeOptions) = baton::Node::join;
  return join != nullptr ? 0 : 1;
}
