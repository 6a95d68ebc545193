# the user makes the StatefulSingleton, with onEviction ReplaceFirst
  patch statefulsingleton db: Keep
  create configmap statefulsingleton-wrapper: Wrapper
= Running, active: none, waiting: none
= Available False NoPods: no pod matches the selector
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# the user makes a Deployment of 1, RollingUpdate
    web-1-a is made
    web-1-a is bound to n1
  patch status of statefulsingleton db: Holder, web-1-a, epoch 1
  patch pod web-1-a: Grant, epoch 1
  create poddisruptionbudget db.singleton: Budget
  set a condition of pod web-1-a: Ready, True
    web-1-a waits at its gate
    web-1-a runs its program
  patch pod web-1-a: Remind, epoch 1
= Running, active: web-1-a, waiting: none
= Available True ActivePodReady: pod web-1-a runs
= Progressing False Steady: no handover in progress
= Degraded False Healthy: no problems detected
# a person cordons all nodes
  patch pod web-1-a: Detach, its Node n1 is cordoned, and ReplicaSet web-1 makes another pod
    web-1-b is made
= Transitioning, active: web-1-a, waiting: web-1-b
= Available True ActivePodReady: pod web-1-a runs
= Progressing True WaitingForPod: pod web-1-a is to leave Node n1, which is cordoned, and runs on; pod web-1-b is to take its place, and has no Node yet; see: kubectl -n ns describe pod web-1-b; to keep it there: kubectl uncordon n1
= Degraded False Healthy: no problems detected
# the user deletes the StatefulSingleton
  delete poddisruptionbudget db.singleton: Budget
  patch pod web-1-a: Return, to ReplicaSet web-1
    web-1 adopts web-1-a
    web-1 deletes web-1-b
  patch pod web-1-a: LetGo
  patch statefulsingleton db: Release
= there is no StatefulSingleton
# a person uncordons all nodes
= there is no StatefulSingleton
