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
  patch status of statefulcluster db: Names
  create pod db-d: Replacement, in place of db-a
  create persistentvolumeclaim db-data-d: Claim
    db-a is gone
    db-d is bound to n1
  patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Lost
    db-d runs one
    db-d is Ready
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected; data of lost members was set aside on these claims: db-data-a; to restore a member: `kubectl -n ns annotate pvc -l enge.me/cluster=db,enge.me/member=a enge.me/adopt=db`, then delete the pod of the member to replace, or raise replicas (Degraded)
  patch controllerrevision revision-1: RevisionReady
