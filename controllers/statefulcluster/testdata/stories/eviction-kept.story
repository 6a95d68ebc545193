# the user creates a set of 3
  create controllerrevision revision-1: Revision
  patch status of statefulcluster db: Names
  create pod db-a: Missing
  create persistentvolumeclaim db-data-a: Claim
  create pod db-b: Missing
  create persistentvolumeclaim db-data-b: Claim
  create pod db-c: Missing
  create persistentvolumeclaim db-data-c: Claim
    db-a is bound to n1
    db-b is bound to n2
    db-c is bound to n3
  create poddisruptionbudget db: Budget
    db-a runs one
    db-b runs one
    db-c runs one
    db-a is Ready
    db-b is Ready
    db-c is Ready
  patch controllerrevision revision-1: RevisionReady
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
# a drain evicts the first pod
  patch status of statefulcluster db: Update
    db-a is gone
  create pod db-a: Returned, recreated with the same name and claims
    db-a is bound to n1
    db-a runs one
    db-a is Ready
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
  patch controllerrevision revision-1: RevisionReady
