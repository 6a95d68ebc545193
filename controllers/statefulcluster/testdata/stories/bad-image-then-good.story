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
# the user sets image bad
  create controllerrevision revision-2: Revision
  patch pod db-a: Updated, in place
    db-a runs bad
= 3 members, 2 ready, 0 updated, 0 lost
= False MembersUnavailable: 2 of 3 members are available (Available)
= True Updating: 0 of 3 members have revision revision-2; not Ready: db-a (ImagePullBackOff) (Progressing)
= False Healthy: no problems detected so far; see condition Progressing (Degraded)
# the user sets image two
  create controllerrevision revision-3: Revision
  patch pod db-a: Updated, in place
    db-a runs two
    db-a is Ready
  patch pod db-a: Updated, complete
  patch controllerrevision revision-3: RevisionReady
  patch pod db-b: Updated, in place
    db-b runs two
  patch pod db-b: Updated, complete
  patch pod db-c: Updated, in place
    db-c runs two
  patch pod db-c: Updated, complete
= 3 members, 3 ready, 3 updated, 0 lost
= True AllMembersAvailable: 3 of 3 members are available (Available)
= False Complete: no operation in progress; the set has 3 members (Progressing)
= False Healthy: no problems detected (Degraded)
  patch controllerrevision revision-3: RevisionReady
