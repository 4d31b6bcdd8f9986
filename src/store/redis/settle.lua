-- Who holds, who waits, whose turn it is: core/settle.cc.

local now = batch.now

local function find_holder(state, grant)
  for i, holder in ipairs(state.holders) do
    if holder[GRANT] == grant then return holder, i end
  end
end

-- Waiters by grant, made when first asked for: a thousand of them may come in one batch.
local function places(state)
  local known = state.known
  if not known then
    known = {[true] = {}, [false] = {}}
    for _, waiter in ipairs(state.waiters) do known[waiter[CONVERTING]][waiter[GRANT]] = waiter end
    state.known = known
  end
  return known
end

local function find_waiter(state, grant, converting) return places(state)[converting][grant] end

local function erase_waiter(state, grant, converting)
  local known = places(state)[converting]
  local waiter = known[grant]
  if not waiter then return end
  known[grant] = nil
  for i, other in ipairs(state.waiters) do
    if other == waiter then
      table.remove(state.waiters, i)
      break
    end
  end
  changed(state)
end

local function ahead(a, b)
  if a[CONVERTING] ~= b[CONVERTING] then return a[CONVERTING] end
  return a[TURN] < b[TURN]
end

-- Behind all who are not behind it.
local function insert_waiter(state, waiter)
  local waiters = state.waiters
  local place = #waiters + 1
  while place > 1 and ahead(waiter, waiters[place - 1]) do place = place - 1 end
  table.insert(waiters, place, waiter)
  places(state)[waiter[CONVERTING]][waiter[GRANT]] = waiter
  changed(state)
end

local function erase_holder(state, grant)
  local _, i = find_holder(state, grant)
  if i then table.remove(state.holders, i) end
end

local function kept(list, is_over)
  local rest = {}
  for _, item in ipairs(list) do
    if not is_over(item) then rest[#rest + 1] = item end
  end
  return rest
end

local function drop_ended(state)
  local before = #state.holders + #state.waiters
  state.holders = kept(state.holders, function(holder) return holder[EXPIRES] <= now end)
  state.waiters = kept(state.waiters, function(waiter)
    return waiter[STALE] <= now or waiter[CONVERTING] and not find_holder(state, waiter[GRANT])
  end)
  if #state.tombstones > 0 then
    state.tombstones = kept(state.tombstones, function(tombstone) return tombstone[2] <= now end)
  end
  local dropped = before - #state.holders - #state.waiters
  if dropped > 0 then state.known = nil end
  return dropped > 0
end

local function its_turn(state, index)
  local waiter = state.waiters[index]
  for _, holder in ipairs(state.holders) do
    if holder[GRANT] ~= waiter[GRANT] and not compatible(holder[MODE], waiter[MODE]) then
      return false
    end
  end
  for i = 1, index - 1 do
    if not compatible(state.waiters[i][MODE], waiter[MODE]) then return false end
  end
  return true
end

-- `now` stands still during a batch, so a name that nobody has touched since stays settled.
local function settle(state)
  if state.settled then return end
  local freed = drop_ended(state) or state.dirty
  local i = 1
  while i <= #state.waiters do
    local waiter = state.waiters[i]
    if not its_turn(state, i) then
      i = i + 1
    elseif not waiter[ALONE] or waiter[CONVERTING] then
      if freed then wake(waiter) end
      i = i + 1
    elseif batch.spent(state.n) then
      i = i + 1  -- told so when it asks
    else
      table.remove(state.waiters, i)
      places(state)[false][waiter[GRANT]] = nil
      table.insert(state.holders, {
        batch.next(state.n), now, now + waiter[HANDOFF] * 1000, waiter[TTL], waiter[AT_LEAST],
        waiter[GRANT], waiter[MODE], HANDED, false, unpack(waiter, IF_BELOW, METADATA)
      })
      wake(waiter)
      changed(state)
    end
  end
  state.settled = true
end

-- Called before the request changes anything.
local function need_tokens(q)
  for _, state in ipairs(q.states) do
    if batch.spent(state.n) then error('NOTOKENS', 0) end
  end
end

local function settle_all(q)
  for _, state in ipairs(q.states) do settle(state) end
end

-- Who is in the way, and when the first of them goes by itself. Holders count first: while one is
-- in the way, a waiter that goes changes nothing.
local function new_obstacle() return {blocked = false, holders = {}} end

local function add_holder(obstacle, holder)
  obstacle.blocked = true
  local ends = obstacle.holder_ends
  if not ends or holder[EXPIRES] < ends then obstacle.holder_ends = holder[EXPIRES] end
  if #obstacle.holders < 8 then table.insert(obstacle.holders, holder) end
end

local function add_waiters(obstacle, state, grant, mode, turn)
  for _, waiter in ipairs(state.waiters) do
    if waiter[GRANT] ~= grant and (waiter[CONVERTING] or not turn or waiter[TURN] < turn) and
       not compatible(waiter[MODE], mode) then
      obstacle.blocked = true
      local ends = obstacle.waiter_ends
      if not ends or waiter[STALE] < ends then obstacle.waiter_ends = waiter[STALE] end
    end
  end
end

local function obstacle_for(q)
  local obstacle = new_obstacle()
  for i, state in ipairs(q.states) do
    for _, holder in ipairs(state.holders) do
      if holder[GRANT] ~= q.grant and not compatible(holder[MODE], q.modes[i]) then
        add_holder(obstacle, holder)
      end
    end
  end
  if obstacle.blocked then return obstacle end
  for i, state in ipairs(q.states) do
    local own = find_waiter(state, q.grant, false)
    add_waiters(obstacle, state, q.grant, q.modes[i], own and own[TURN])
  end
  return obstacle
end

local function blocked_reply(outcome, obstacle)
  return reply(outcome, {
    holders = cmsgpack.pack(obstacle.holders), ends = obstacle.holder_ends or obstacle.waiter_ends
  })
end
