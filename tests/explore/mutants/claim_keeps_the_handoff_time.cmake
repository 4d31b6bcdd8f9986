# A claimed grant ends with its hand-off, not a TTL after the claim.
set(FILE src/core/acquire.cc)
set(REPLACE_1 [[    holder.expires = first_expiry(holder, step.now);
    make_change(first, holder.change, step.effects);]])
set(WITH_1 [[    make_change(first, holder.change, step.effects);
    return granted(step, found);]])
