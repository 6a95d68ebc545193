  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create service db-secondary: Child
  create poddisruptionbudget rss-db.primary: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 3 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    c-uid-15-0 runs
    c-uid-16-0 runs
    c-uid-17-0 runs
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

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

# the request is set to 2 cpu
  patch statefulset rss-db: Template
  patch pod rss-db-2: InPlace, to rss-db-bfa872a22db31
  resize pod rss-db-2: Resize, to rss-db-bfa872a22db31
    rss-db-2 has 2 cpu, as its kubelet reports
  patch pod rss-db-2: Resized, it has revision rss-db-bfa872a22db31
  patch pod rss-db-1: InPlace, to rss-db-bfa872a22db31
  resize pod rss-db-1: Resize, to rss-db-bfa872a22db31
    rss-db-1 has 2 cpu, as its kubelet reports
  patch pod rss-db-1: Resized, it has revision rss-db-bfa872a22db31
  patch pod rss-db-0: InPlace, to rss-db-bfa872a22db31
  resize pod rss-db-0: Resize, to rss-db-bfa872a22db31
    rss-db-0 has 2 cpu, as its kubelet reports
  patch pod rss-db-0: Resized, it has revision rss-db-bfa872a22db31
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0] secondary [rss-db-1 rss-db-2] failed []
