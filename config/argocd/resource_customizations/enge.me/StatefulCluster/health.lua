-- The health of a StatefulCluster, from conditions that its operator keeps.
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
