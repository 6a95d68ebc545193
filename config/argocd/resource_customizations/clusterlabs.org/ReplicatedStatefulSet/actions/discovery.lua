local paused = obj.spec.paused == true
local members = {}
if obj.status ~= nil and obj.status.members ~= nil then
  members = obj.status.members
end
local successor = members.secondary ~= nil and members.secondary[1] ~= nil
return {
  ["pause"] = {["disabled"] = paused},
  ["resume"] = {["disabled"] = not paused},
  ["switchover"] = {["disabled"] = paused or not successor}
}
