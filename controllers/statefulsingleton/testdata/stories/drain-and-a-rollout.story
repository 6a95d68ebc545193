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
# an administrator cordons all nodes
  patch pod web-1-a: Detach, its Node n1 is cordoned, and ReplicaSet web-1 creates another pod
    web-1-b is created
= Transitioning, active: web-1-a, waiting: web-1-b
= Available True ActivePodReady: pod web-1-a is running
= Progressing True WaitingForPod: pod web-1-a has to leave cordoned Node n1 and keeps running; pod web-1-b will replace it, but has no Node yet; see: kubectl -n ns describe pod web-1-b; to keep it there: kubectl uncordon n1
= Degraded False Healthy: no problems detected
# the user sets image two
    web-2-c is created
= Transitioning, active: web-1-a, waiting: web-2-c, web-1-b
= Available True ActivePodReady: pod web-1-a is running
= Progressing True WaitingForPod: pod web-1-a has to leave cordoned Node n1 and keeps running; pod web-2-c will replace it, but has no Node yet; see: kubectl -n ns describe pod web-2-c; to keep it there: kubectl uncordon n1
= Degraded False Healthy: no problems detected
# the user sets image one
= Transitioning, active: web-1-a, waiting: web-2-c, web-1-b
= Available True ActivePodReady: pod web-1-a is running
= Progressing True WaitingForPod: pod web-1-a has to leave cordoned Node n1 and keeps running; pod web-2-c will replace it, but has no Node yet; see: kubectl -n ns describe pod web-2-c; to keep it there: kubectl uncordon n1
= Degraded False Healthy: no problems detected
# an administrator uncordons all nodes
  patch pod web-1-a: Return, to ReplicaSet web-1
    web-1 adopts web-1-a
    web-1-b is bound to n2
    web-2-c is bound to n3
    web-2 is scaled to 0
    web-1 deletes web-1-b
    web-2 deletes web-2-c
    web-2-c waits at its gate
    web-1-b does not start
    web-2-c stops
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a is running
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
