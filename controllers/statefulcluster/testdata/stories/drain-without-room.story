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
# all nodes are cordoned for ten minutes
  patch status of statefulcluster db: Names
  create pod db-d: Missing, to replace members on cordoned nodes: db-a, db-b, db-c
  create persistentvolumeclaim db-data-d: Claim
    db-d finds no node
  patch poddisruptionbudget db: Budget
  patch controllerrevision revision-1: RevisionReady
= 4 members, 3 ready, 4 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= True Draining: 3 members on cordoned nodes will be retired when new members are available: db-a, db-b, db-c; not Ready: db-d (Unschedulable); to keep them: `kubectl uncordon n1 n2 n3` (Progressing)
= True DrainBlocked: new members are unschedulable, and these members cannot leave their cordoned nodes without them: db-a, db-b, db-c; `kubectl -n ns describe pod db-d` shows what is missing; add capacity, or end the drain: `kubectl uncordon n1 n2 n3`; member db-d cannot be scheduled: Unschedulable; check the events of the pod: kubectl -n ns describe pod db-d (Degraded)
# all nodes are uncordoned
  patch persistentvolumeclaim db-data-d: Retention, labeled enge.me/retained=Scaled
  delete pod db-d: Retired, claims db-data-d
  patch poddisruptionbudget db: Budget
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
