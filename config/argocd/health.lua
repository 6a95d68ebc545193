-- The health of an object of any of the four kinds, from conditions that its operator keeps.
local function progressing(message)
  return {status = "Progressing", message = message}
end

if obj.status == nil or obj.status.conditions == nil then
  return progressing("the operator has not looked at it yet")
end
if obj.status.observedGeneration ~= obj.metadata.generation then
  return progressing("the operator has not seen the last change yet")
end

local says = {}
for _, condition in ipairs(obj.status.conditions) do
  says[condition.type] = condition
end
local function isTrue(kind)
  return says[kind] ~= nil and says[kind].status == "True"
end

-- A ReplicatedStatefulSet that a person has paused is Suspended, unless something else needs a
-- person. No other kind has the condition.
if isTrue("Paused") and says.Paused.reason == "PausedByUser" then
  if not isTrue("Stalled") or says.Stalled.reason == "PausedByUser" then
    return {status = "Suspended", message = says.Paused.message}
  end
end
if isTrue("Stalled") then
  return {status = "Degraded", message = says.Stalled.message}
end
if isTrue("Ready") then
  local what = says.Ready
  if isTrue("Degraded") then
    what = says.Degraded -- it is as its spec says, and something beside it is wrong
  end
  return {status = "Healthy", message = what.message}
end
if says.Ready ~= nil then
  return progressing(says.Ready.message)
end
return progressing("an operator without condition Ready has looked at it")
