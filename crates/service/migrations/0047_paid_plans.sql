-- The plan's key while the plan is a paid one. Whether a payment method is missing follows from this, the trial and the app's
-- provider, which may be switched at any time. A node of the release before leaves it as it is when it changes the plan, and
-- then it is another key than plan_key.
ALTER TABLE tenants ADD COLUMN paid_plan_key {key};
UPDATE tenants SET paid_plan_key = plan_key WHERE EXISTS (SELECT 1 FROM subscriptions
    WHERE subscriptions.app_id = tenants.app_id AND subscriptions.tenant_id = tenants.id
    AND subscriptions.plan_key = tenants.plan_key AND subscriptions.status <> 'canceled' AND NOT subscriptions.free);
