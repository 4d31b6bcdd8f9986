#include "apps/documents/operate/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace baton::documents {
namespace {

constexpr std::size_t kMostEvents = 5;
constexpr std::size_t kOtherLines = 11;  // besides replicas and events

std::size_t terminal_rows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

std::string clock_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 16> text{};
  (void)std::strftime(text.data(), text.size(), "%H:%M:%S", &local);
  return text.data();
}

template <typename... Values>
std::string line_of(const char* format, const Values&... values) {
  std::array<char, 256> line{};
  (void)std::snprintf(line.data(), line.size(), format, values...);
  return std::string(line.data()) + "\n";
}

std::string state_of(const Replica& replica) {
  if (!replica.running()) {
    if (replica.given_up()) return "given up";
    std::array<char, 16> text{};
    const auto left = static_cast<double>(replica.starts_in(BootClock::now()).count());
    (void)std::snprintf(text.data(), text.size(), "in %.1f s", left / 1'000);
    return text.data();
  }
  if (process_state(replica.pid()) == 'T') return "paused";
  return replica.url().empty() ? "starting" : "running";
}

template <typename Number>
std::string number_or(const std::optional<Number>& number) {
  return number ? std::to_string(*number) : "-";
}

// The figures of a service stand behind its first replica.
const Figures::Service* service_of(const Figures* figures, const std::string& instance) {
  if (figures == nullptr || !instance.ends_with("-1")) return nullptr;
  for (const Figures::Service& service : figures->services) {
    if (instance == service.name + "-1") return &service;
  }
  return nullptr;
}

// Where documents are submitted; empty: nowhere now.
std::string entrance(const std::vector<Replica>& replicas) {
  for (const Replica& replica : replicas) {
    if (!replica.instance().starts_with("ingestion-")) continue;
    if (std::string url = replica.url(); !url.empty()) return url + "/documents";
  }
  return "";
}

std::string about_documents(const Figures& figures) {
  std::string text = "  documents ";
  for (const char* status : {"UPLOADED", "VALIDATED", "REJECTED", "FAILED", "ENRICHED"}) {
    text += " " + std::string(status) + " " + std::to_string(figures.count(status));
  }
  return text + "\n  audit log  " + std::to_string(figures.events) + " events, " +
         std::to_string(figures.sealed) + " of them sealed; notifications " +
         std::to_string(figures.notifications) + "\n";
}

}  // namespace

Display::Display(const Places& places)
    : places_(places), terminal_(::isatty(STDOUT_FILENO) != 0), reader_(places) {}

void Display::show(const std::vector<Replica>& replicas) {
  const auto figures = reader_.read();
  const std::string line = figures ? figures->line() : "waiting for the services";
  const bool ready = std::all_of(replicas.begin(), replicas.end(),
                                 [](const Replica& one) { return !one.url().empty(); });
  if (terminal_) {
    draw(replicas, figures);
  } else {
    if (ready && !told_ready_) tell_ready(replicas);
    if (line != last_line_) std::printf("%s\n", line.c_str());
    const std::string trouble = figures ? figures->broker_trouble : "";
    if (trouble != last_trouble_ && !trouble.empty()) {
      std::printf("the broker does not answer: %s\n", trouble.c_str());
    }
    last_trouble_ = trouble;
  }
  told_ready_ = told_ready_ || ready;
  last_line_ = line;
  std::fflush(stdout);
}

void Display::ended(const Replica& replica) {
  const std::string then =
      replica.given_up() ? "; it has ended like this several times and is not started again: mend "
                           "that, then start 'documents up' anew"
                         : "; starting it again";
  const std::string text = replica.instance() + " " + replica.last_end() + then;
  if (!terminal_) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
  }
  events_.push_back(clock_text() + "  " + text);
  if (events_.size() > kMostEvents) events_.pop_front();
}

void Display::stopping(std::size_t left) {
  if (terminal_ && drawn_ > 0) std::printf("\n");
  drawn_ = 0;
  std::printf("stopping %zu processes%s\n", left,
              terminal_ ? "; Ctrl-C again to kill them, which loses nothing" : "");
  std::fflush(stdout);
}

void Display::stopped() const {
  std::printf("stopped; the next 'documents up' on this directory goes on where it was\n");
  std::fflush(stdout);
}

void Display::tell_ready(const std::vector<Replica>& replicas) const {
  for (const Replica& replica : replicas) {
    std::printf("%-16s %7d  %s\n", replica.instance().c_str(), replica.pid(),
                replica.url().c_str());
  }
  std::printf("ready: POST %s\n", entrance(replicas).c_str());
}

std::string Display::table(const std::vector<Replica>& replicas, const Figures* figures,
                           std::size_t most) const {
  constexpr const char* kLine = "  %-16s%7s %5s  %-9s %8s %6s %6s %5s %4s";
  std::string text = line_of(kLine, "REPLICA", "PID", "PORT", "STATE", "RESTARTS", "QUEUED",
                             "OUTBOX", "RETRY", "DEAD");
  for (std::size_t i = 0; i < std::min(most, replicas.size()); ++i) {
    const Replica& replica = replicas[i];
    const std::string url = replica.url();
    const auto* service = service_of(figures, replica.instance());
    const auto figure = [&](auto member) {
      return service == nullptr ? std::string() : member(*service);
    };
    text +=
        line_of(kLine, replica.instance().c_str(),
                replica.running() ? std::to_string(replica.pid()).c_str() : "-",
                url.empty() ? "-" : url.substr(url.rfind(':') + 1).c_str(),
                state_of(replica).c_str(), std::to_string(std::max(replica.restarts(), 0)).c_str(),
                figure([](const auto& one) { return number_or(one.queued); }).c_str(),
                figure([](const auto& one) { return number_or(one.to_publish); }).c_str(),
                figure([](const auto& one) { return std::to_string(one.retrying); }).c_str(),
                figure([](const auto& one) { return std::to_string(one.dead); }).c_str());
  }
  if (most < replicas.size()) {
    text += "  … and " + std::to_string(replicas.size() - most) + " more\n";
  }
  return text;
}

void Display::draw(const std::vector<Replica>& replicas, const Result<Figures>& figures) {
  const std::size_t rows = terminal_rows();
  const std::size_t fixed = kOtherLines + events_.size();
  std::string text = "  Services of " + places_.directory + "; Ctrl-C stops them.\n\n";
  text += table(replicas, figures ? &*figures : nullptr, rows > fixed + 3 ? rows - fixed : 3);
  text += "\n";
  text += figures ? about_documents(*figures) : "  waiting for the services\n";
  if (figures && !figures->broker_trouble.empty()) {
    text += "  the broker does not answer: " + figures->broker_trouble + "\n";
  }
  if (const std::string url = entrance(replicas); !url.empty()) {
    text += "  submit by  POST " + url + "\n";
  }
  if (!events_.empty()) text += "\n";
  for (const std::string& event : events_) text += "  " + event + "\n";

  std::string out = "\x1b[?7l";  // a line that wraps would not be drawn over
  if (drawn_ > 0) out += "\x1b[" + std::to_string(drawn_) + "A";
  for (std::size_t from = 0; from < text.size();) {
    const auto end = text.find('\n', from);
    out += text.substr(from, end - from) + "\x1b[K\n";
    from = end + 1;
  }
  out += "\x1b[J\x1b[?7h";
  drawn_ = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  std::fputs(out.c_str(), stdout);
}

}  // namespace baton::documents
