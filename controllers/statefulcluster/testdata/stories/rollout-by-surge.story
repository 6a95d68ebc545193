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
# the user sets image two
  create controllerrevision revision-2: Revision
  patch status of statefulcluster db: Names
  create pod db-d: Missing
  create persistentvolumeclaim db-data-d: Claim
    db-d is bound to n4
    db-d runs two
    db-d is Ready
  patch controllerrevision revision-2: RevisionReady
  patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Scaled
  delete pod db-a: Retired, claims db-data-a
    db-a is gone
  patch status of statefulcluster db: Names
  create pod db-e: Missing
  create persistentvolumeclaim db-data-e: Claim
    db-e is bound to n1
    db-e runs two
    db-e is Ready
  patch persistentvolumeclaim db-data-b: Retention, labeled enge.me/retained=Scaled
  delete pod db-b: Retired, claims db-data-b
    db-b is gone
  patch status of statefulcluster db: Names
  create pod db-f: Missing
  create persistentvolumeclaim db-data-f: Claim
    db-f is bound to n2
    db-f runs two
    db-f is Ready
  patch persistentvolumeclaim db-data-c: Retention, labeled enge.me/retained=Scaled
  delete pod db-c: Retired, claims db-data-c
    db-c is gone
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
  patch controllerrevision revision-2: RevisionReady
