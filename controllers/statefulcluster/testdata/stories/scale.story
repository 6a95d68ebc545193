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
# the user sets replicas to 5
  patch status of statefulcluster db: Names
  create pod db-d: Missing
  create persistentvolumeclaim db-data-d: Claim
  create pod db-e: Missing
  create persistentvolumeclaim db-data-e: Claim
    db-d is bound to n4
    db-e is bound to n1
    db-d runs one
    db-e runs one
    db-d is Ready
    db-e is Ready
= 5 members, 5 ready, 5 updated, 0 lost
= True AllMembersAvailable: 5 of 5 members are available (Available)
= False Complete: no operation in progress; the set has 5 members (Progressing)
= False Healthy: no problems detected (Degraded)
# the user sets replicas to 3
  patch persistentvolumeclaim db-data-e: Retention, labeled enge.me/retained=Scaled
  delete pod db-e: Retired, claims db-data-e
  patch persistentvolumeclaim db-data-d: Retention, labeled enge.me/retained=Scaled
  delete pod db-d: Retired, claims db-data-d
    db-d is gone
    db-e is gone
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
  patch controllerrevision revision-1: RevisionReady
