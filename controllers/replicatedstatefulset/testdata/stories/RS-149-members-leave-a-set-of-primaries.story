  patch replicatedstatefulset db: Keep
  create service db-svc: Child
  create service db-primary: Child
  create service db-active: Child
  create poddisruptionbudget rss-db: Child
  create statefulset rss-db: Child, 3 pods
    rss-db-0 is created
    rss-db-1 is created
    rss-db-2 is created
    c-uid-13-0 runs
    c-uid-14-0 runs
    c-uid-15-0 runs
  patch status of replicatedstatefulset db: Seed, rss-db-0: the newest copy, sequence 0
  exec in pod rss-db-0: Seed, alone
    rss-db-0: /seed = 0
  patch status of replicatedstatefulset db: Learned, seed of rss-db-0 succeeded
  patch pod rss-db-0: Role, primary
  patch status of replicatedstatefulset db: Primary, rss-db-1: another primary is wanted
  exec in pod rss-db-1: Primary, with rss-db-0.db-svc
    rss-db-1: /primary rss-db-0.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-1 succeeded
  patch pod rss-db-1: Role, primary
  patch status of replicatedstatefulset db: Primary, rss-db-2: another primary is wanted
  exec in pod rss-db-2: Primary, with rss-db-0.db-svc rss-db-1.db-svc
    rss-db-2: /primary rss-db-0.db-svc rss-db-1.db-svc = 0
  patch status of replicatedstatefulset db: Learned, primary of rss-db-2 succeeded
  patch pod rss-db-2: Role, primary

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

# replicas is set to 2
= Failed: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

= Failed: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

# replicas is set to 3
= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []

= Running: ready [rss-db-0 rss-db-1 rss-db-2] primary [rss-db-0 rss-db-1 rss-db-2] secondary [] failed []
