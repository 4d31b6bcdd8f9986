# A release ends whatever grant is there, a successor's too.
set(FILE src/core/end.cc)
set(REPLACE_1 [[    Holder* holder = find_holder(state, request.grant);
    return holder != nullptr]])
set(WITH_1 [[    Holder* holder = state.holders.empty() ? nullptr : &state.holders.front();
    return holder != nullptr]])
set(REPLACE_2 [[std::erase_if(state.holders, [&](const Holder& h) { return h.grant == step.request.grant; });]])
set(WITH_2 [[state.holders.erase(state.holders.begin());]])
