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
# the user sets command serve
  create controllerrevision revision-2: Revision
  try pod db-a: Trial, dry run before pods are deleted for the update
  patch status of statefulcluster db: Update
  delete pod db-a: Update, the pod will be recreated with the same name and claims
    db-a is gone
  create pod db-a: Returned, recreated with the same name and claims
    db-a is bound to n1
    db-a runs one
    db-a is Ready
  patch controllerrevision revision-2: RevisionReady
  try pod db-b: Trial, dry run before pods are deleted for the update
  patch status of statefulcluster db: Update
  delete pod db-b: Update, the pod will be recreated with the same name and claims
    db-b is gone
  create pod db-b: Returned, recreated with the same name and claims
    db-b is bound to n2
    db-b runs one
    db-b is Ready
  try pod db-c: Trial, dry run before pods are deleted for the update
  patch status of statefulcluster db: Update
  delete pod db-c: Update, the pod will be recreated with the same name and claims
    db-c is gone
  create pod db-c: Returned, recreated with the same name and claims
    db-c is bound to n3
    db-c runs one
    db-c is Ready
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
  patch controllerrevision revision-2: RevisionReady
