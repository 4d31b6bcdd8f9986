#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "apps/documents/operate/figures.h"
#include "apps/documents/operate/replica.h"

namespace baton::documents {

// What `documents up` shows: on a terminal a table that is drawn over itself, elsewhere lines when
// something changes.
class Display {
 public:
  explicit Display(const Places& places);

  void show(const std::vector<Replica>& replicas);
  void ended(const Replica& replica);
  void stopping(std::size_t left);
  void stopped() const;
  [[nodiscard]] bool ready() const { return told_ready_; }  // all replicas have once served

 private:
  void tell_ready(const std::vector<Replica>& replicas) const;
  void draw(const std::vector<Replica>& replicas, const Result<Figures>& figures);
  [[nodiscard]] std::string table(const std::vector<Replica>& replicas, const Figures* figures,
                                  std::size_t most) const;

  const Places& places_;
  const bool terminal_;
  FiguresReader reader_;
  std::deque<std::string> events_;
  std::string last_line_;
  std::string last_trouble_;
  bool told_ready_ = false;
  std::size_t drawn_ = 0;  // lines
};

}  // namespace baton::documents
