  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create service db-secondary: Child
  create poddisruptionbudget rss-db.primary: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 4 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    rss-db-3 is created
    c-uid-15-0 runs
    c-uid-16-0 runs
    c-uid-17-0 runs
    c-uid-18-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 0
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch status of replicatedstatefulset db: Secondary, rss-db-1: another secondary is wanted
  exec in pod rss-db-1: Secondary, with rss-db-0.db-svc
    rss-db-1: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-1 succeeded
  patch pod rss-db-1: Role, secondary
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary
  patch status of replicatedstatefulset db: Secondary, rss-db-3: another secondary is wanted
  exec in pod rss-db-3: Secondary, with rss-db-0.db-svc
    rss-db-3: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-3 succeeded
  patch pod rss-db-3: Role, secondary

= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

# replicas is set to 3
  patch pod rss-db-3: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-3: scaled down
  exec in pod rss-db-3: Leave, with rss-db-0.db-svc
    rss-db-3: /leave rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, leave of rss-db-3 succeeded
  patch status of replicatedstatefulset db: Stop, rss-db-3: scaled down
  exec in pod rss-db-3: Stop, with rss-db-0.db-svc
    rss-db-3: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-3 succeeded
  patch statefulset rss-db: Scale, from 4 to 3
    rss-db-3 is deleted by its StatefulSet
  patch poddisruptionbudget rss-db: Child
    c-uid-18-0 ends
    c-uid-18-0 has ended, as its kubelet reports
  patch pod rss-db-3: Release
    rss-db-3 is removed by its kubelet
  patch status of replicatedstatefulset db: Learned
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

# a switchover to rss-db-2 is requested
  patch poddisruptionbudget rss-db: Budget, block evictions during the handover
  patch pod rss-db-0: Role, secondary
  patch status of replicatedstatefulset db: Demote, rss-db-0: rss-db-2 takes over, as requested
  exec in pod rss-db-0: Demote, with rss-db-0.db-svc
    rss-db-0: /demote rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, demote of rss-db-0 succeeded; rss-db-0 is not primary: status reports that it is secondary
  patch status of replicatedstatefulset db: Promote, rss-db-2: it has the newest copy of the running members, sequence 10002
  exec in pod rss-db-2: Promote, alone
    rss-db-2: /promote = 0
  patch status of replicatedstatefulset db: Learned, promote of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary
  patch replicatedstatefulset db: Override, rss-db-2 is primary, as requested
  patch poddisruptionbudget rss-db: Child
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-2] secondary [rss-db-0 rss-db-1] failed []

# replicas is set to 2
# rss-db-2 leave fails twice
  patch poddisruptionbudget rss-db: Budget, block evictions during the handover
  patch pod rss-db-2: Role, secondary
  patch status of replicatedstatefulset db: Demote, rss-db-2: scaled down, and rss-db-0 can take over
  exec in pod rss-db-2: Demote, with rss-db-2.db-svc
    rss-db-2: /demote rss-db-2.db-svc = 0
  patch status of replicatedstatefulset db: Learned, demote of rss-db-2 succeeded; rss-db-2 is not primary: status reports that it is secondary
  patch status of replicatedstatefulset db: Promote, rss-db-0: it has the newest copy of the running members, sequence 20002
  exec in pod rss-db-0: Promote, alone
    rss-db-0: /promote = 0
  patch status of replicatedstatefulset db: Learned, promote of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch pod rss-db-2: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc
    rss-db-2: /leave rss-db-0.db-svc fails
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 failed with exit code 1
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc
    rss-db-2: /leave rss-db-0.db-svc fails
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 failed with exit code 1
  patch status of replicatedstatefulset db: Leave, rss-db-2: scaled down
  exec in pod rss-db-2: Leave, with rss-db-0.db-svc
    rss-db-2: /leave rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, leave of rss-db-2 succeeded
  patch status of replicatedstatefulset db: Stop, rss-db-2: scaled down
  exec in pod rss-db-2: Stop, with rss-db-0.db-svc
    rss-db-2: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-2 succeeded
  patch statefulset rss-db: Scale, from 3 to 2
    rss-db-2 is deleted by its StatefulSet
  patch poddisruptionbudget rss-db: Child
    c-uid-17-0 ends
    c-uid-17-0 has ended, as its kubelet reports
  patch pod rss-db-2: Release
    rss-db-2 is removed by its kubelet
  patch status of replicatedstatefulset db: Learned
= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

= Running: ready [rss-db-0 rss-db-1] primary [rss-db-0] secondary [rss-db-1] failed []

# replicas is set to 4
  patch poddisruptionbudget rss-db: Child
  patch statefulset rss-db: Scale, from 2 to 4
    rss-db-2 is created
    rss-db-3 is created
    c-uid-19-0 runs
    c-uid-20-0 runs
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary
  patch status of replicatedstatefulset db: Secondary, rss-db-3: another secondary is wanted
  exec in pod rss-db-3: Secondary, with rss-db-0.db-svc
    rss-db-3: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-3 succeeded
  patch pod rss-db-3: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

# replicas is set to 0
  patch poddisruptionbudget rss-db: Child
  patch pod rss-db-3: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-3: scaled down
  exec in pod rss-db-3: Stop, with rss-db-0.db-svc
    rss-db-3: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-3 succeeded
  patch pod rss-db-2: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-2: scaled down
  exec in pod rss-db-2: Stop, with rss-db-0.db-svc
    rss-db-2: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-2 succeeded
  patch pod rss-db-1: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-1: scaled down
  exec in pod rss-db-1: Stop, with rss-db-0.db-svc
    rss-db-1: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-1 succeeded
  patch poddisruptionbudget rss-db: Budget, block evictions during the handover
  patch pod rss-db-0: Role, none
  patch status of replicatedstatefulset db: Stop, rss-db-0: scaled down
  exec in pod rss-db-0: Stop, with rss-db-0.db-svc
    rss-db-0: /stop rss-db-0.db-svc = 0
  patch poddisruptionbudget rss-db.primary: Child
  patch status of replicatedstatefulset db: Learned, stop of rss-db-0 succeeded; rss-db-0 is not primary: status reports that it has stopped
  patch poddisruptionbudget rss-db: Child
  patch statefulset rss-db: Scale, from 4 to 0
    rss-db-0 is deleted by its StatefulSet
    rss-db-1 is deleted by its StatefulSet
    rss-db-2 is deleted by its StatefulSet
    rss-db-3 is deleted by its StatefulSet
  patch poddisruptionbudget rss-db: Child
    c-uid-15-0 ends
    c-uid-16-0 ends
    c-uid-19-0 ends
    c-uid-20-0 ends
    c-uid-15-0 has ended, as its kubelet reports
    c-uid-16-0 has ended, as its kubelet reports
    c-uid-19-0 has ended, as its kubelet reports
    c-uid-20-0 has ended, as its kubelet reports
  patch pod rss-db-0: Release
  patch pod rss-db-1: Release
  patch pod rss-db-2: Release
  patch pod rss-db-3: Release
    rss-db-0 is removed by its kubelet
    rss-db-1 is removed by its kubelet
    rss-db-2 is removed by its kubelet
    rss-db-3 is removed by its kubelet
= Running: ready [] primary [] secondary [] failed []

# replicas is set to 4
  patch poddisruptionbudget rss-db.primary: Child
  patch poddisruptionbudget rss-db: Child
  patch statefulset rss-db: Scale, from 0 to 4
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    rss-db-3 is created
    c-uid-21-0 runs
    c-uid-22-0 runs
    c-uid-23-0 runs
    c-uid-24-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 30003
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch status of replicatedstatefulset db: Secondary, rss-db-1: another secondary is wanted
  exec in pod rss-db-1: Secondary, with rss-db-0.db-svc
    rss-db-1: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-1 succeeded
  patch pod rss-db-1: Role, secondary
  patch poddisruptionbudget rss-db: Child
  patch status of replicatedstatefulset db: Secondary, rss-db-2: another secondary is wanted
  exec in pod rss-db-2: Secondary, with rss-db-0.db-svc
    rss-db-2: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-2 succeeded
  patch pod rss-db-2: Role, secondary
  patch status of replicatedstatefulset db: Secondary, rss-db-3: another secondary is wanted
  exec in pod rss-db-3: Secondary, with rss-db-0.db-svc
    rss-db-3: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-3 succeeded
  patch pod rss-db-3: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

# replicas is set to 2
  patch pod rss-db-3: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-3: scaled down
  exec in pod rss-db-3: Leave, with rss-db-0.db-svc
    rss-db-3: /leave rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, leave of rss-db-3 succeeded
# replicas is set to 4
  patch status of replicatedstatefulset db: Stop, rss-db-3: the application may have forgotten it, and it is not removed
  exec in pod rss-db-3: Stop, with rss-db-0.db-svc
    rss-db-3: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-3 succeeded
  patch status of replicatedstatefulset db: Secondary, rss-db-3: another secondary is wanted
  exec in pod rss-db-3: Secondary, with rss-db-0.db-svc
    rss-db-3: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-3 succeeded
  patch pod rss-db-3: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

# rss-db-3 leave fails twice
# replicas is set to 3
  patch pod rss-db-3: Role, none
  patch status of replicatedstatefulset db: Leave, rss-db-3: scaled down
  exec in pod rss-db-3: Leave, with rss-db-0.db-svc
# replicas is set to 4
    rss-db-3: /leave rss-db-0.db-svc fails
  patch status of replicatedstatefulset db: Learned, leave of rss-db-3 failed with exit code 1
  patch status of replicatedstatefulset db: Stop, rss-db-3: the application may have forgotten it, and it is not removed
  exec in pod rss-db-3: Stop, with rss-db-0.db-svc
    rss-db-3: /stop rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, stop of rss-db-3 succeeded
  patch status of replicatedstatefulset db: Secondary, rss-db-3: another secondary is wanted
  exec in pod rss-db-3: Secondary, with rss-db-0.db-svc
    rss-db-3: /secondary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, secondary of rss-db-3 succeeded
  patch pod rss-db-3: Role, secondary
= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2 rss-db-3] primary [rss-db-0] secondary [rss-db-1 rss-db-2 rss-db-3] failed []
