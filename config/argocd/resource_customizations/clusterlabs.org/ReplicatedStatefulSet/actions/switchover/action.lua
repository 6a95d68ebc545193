-- Makes the first secondary a primary in place of another. The operator waits until that one
-- has all of the data.
if obj.metadata.annotations == nil then
  obj.metadata.annotations = {}
end
obj.metadata.annotations["clusterlabs.org/switchover-to"] = obj.status.members.secondary[1]
return obj
