from django.db import models


class Order(models.Model):
    item = models.CharField(max_length=100)
    state = models.CharField(max_length=10, default="unpaid")


class Outbox(models.Model):  # see "If the process dies in between"
    job_id = models.CharField(max_length=200, unique=True)
    topic = models.CharField(max_length=100)
    body = models.JSONField()
    due = models.DateTimeField()
