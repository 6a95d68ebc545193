# the user creates the StatefulSingleton with onEviction ReplaceFirst
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user creates a Deployment with replicas 1, RollingUpdate
    web-1-a is created
    web-1-a is bound to n1
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  create poddisruptionbudget db.singleton: Budget
  set a condition of pod web-1-a: Ready, True
    web-1-a waits at its gate
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user sets image bad
    web-2-b is created
    web-2-b is bound to n2
= Transitioning, active: web-1-a, waiting: web-2-b
= Available True ActivePodReady: pod web-1-a is running
= Progressing True WaitingForPod: pod web-1-a keeps running; pod web-2-b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod web-2-b
= Degraded False Healthy: no problems detected
# an administrator drains its node
  patch pod web-1-a: Detach, its Node n1 is cordoned, and ReplicaSet web-1 creates another pod
    web-1-c is created
    web-1-c is bound to n3
    web-1-c waits at its gate
  delete pod web-1-a: Superseded, its Node n1 is cordoned, and its replacement waits on another Node
    web-1-a stops
  patch pod web-1-a: Release
  patch status of statefulsingleton db: Holder, web-1-c, epoch 2
  patch pod web-1-c: Grant, epoch 2
  set a condition of pod web-1-c: Ready, True
    web-1-c runs its program
  patch pod web-1-c: Remind, epoch 2
= Transitioning, active: web-1-c, waiting: web-2-b
= Available True ActivePodReady: pod web-1-c is running
= Progressing True WaitingForPod: pod web-1-c keeps running; pod web-2-b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod web-2-b
= Degraded False Healthy: no problems detected
# an administrator uncordons all nodes
= Transitioning, active: web-1-c, waiting: web-2-b
= Available True ActivePodReady: pod web-1-c is running
= Progressing True WaitingForPod: pod web-1-c keeps running; pod web-2-b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod web-2-b
= Degraded False Healthy: no problems detected
# the user sets image one
    web-2 is scaled to 0
    web-2 deletes web-2-b
    web-2-b does not start
= Running, active: web-1-c, waiting: none
= Available True ActivePodReady: pod web-1-c is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
