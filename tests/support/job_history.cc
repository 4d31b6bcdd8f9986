#include "support/job_history.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace baton::test {
namespace {

struct OneJob {
  std::map<std::int64_t, int> ended;                        // by fire
  std::map<std::int64_t, int> begun;                        // by fire
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;  // from start to valid end
  std::uint64_t token = 0;                                  // of the last start
  std::int64_t last = 0;
};

}  // namespace

JobHistory JobHistory::read(const std::filesystem::path& directory) {
  JobHistory history;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    std::ifstream in(file.path());
    std::string line;
    while (std::getline(in, line)) {
      JobEvent event;
      std::istringstream words(line);
      if (words >> event.what >> event.at >> event.job >> event.fire >> event.token >>
          event.attempt >> event.late) {
        event.node = file.path().filename().string();
        history.events_.push_back(std::move(event));
      }
    }
  }
  std::stable_sort(history.events_.begin(), history.events_.end(),
                   [](const JobEvent& a, const JobEvent& b) { return a.at < b.at; });
  return history;
}

std::vector<JobEvent> JobHistory::of(char what) const {
  std::vector<JobEvent> found;
  std::copy_if(events_.begin(), events_.end(), std::back_inserter(found),
               [&](const JobEvent& event) { return event.what == what; });
  return found;
}

std::vector<std::string> JobHistory::problems() const {
  std::vector<std::string> found;
  std::map<std::string, OneJob> jobs;
  std::map<std::pair<std::string, std::uint64_t>, std::int64_t> started;
  for (const JobEvent& event : events_) {
    OneJob& job = jobs[event.job];
    const std::string which = event.job + " fire " + std::to_string(event.fire);
    if (event.what == 'S') {
      if (event.token <= job.token) found.push_back(which + ": its token did not rise");
      job.token = event.token;
      ++job.begun[event.fire];
      job.last = std::max(job.last, event.fire);
      started[{event.job, event.token}] = event.at;
    } else if (event.what == 'E') {
      if (++job.ended[event.fire] > 1) found.push_back(which + ": ended twice");
      job.runs.emplace_back(started[{event.job, event.token}], event.at);
    }
  }
  for (auto& [name, job] : jobs) {
    std::sort(job.runs.begin(), job.runs.end());
    for (std::size_t i = 1; i < job.runs.size(); ++i) {
      if (job.runs[i].first < job.runs[i - 1].second) {
        found.push_back(name + ": two runs at the same time");
      }
    }
    for (std::int64_t fire = 1; fire < job.last; ++fire) {
      const std::string which = name + " fire " + std::to_string(fire);
      if (job.begun[fire] == 0) {
        found.push_back(which + ": left out");
      } else if (job.ended[fire] == 0) {
        found.push_back(which + ": never ended");
      }
    }
  }
  return found;
}

std::map<std::string, std::map<std::string, int>> JobHistory::shares() const {
  std::map<std::string, std::map<std::string, int>> shares;
  for (const JobEvent& event : of('E')) ++shares[event.job][event.node];
  return shares;
}

}  // namespace baton::test
