"""The station: one page for everything that watches. Hears agents on every plane, keeps, shows, tells.

Owns: the store, what is heard, who may come in, the page, who else is told.
In: messages of live planes and thin links, run folders; what people do on the page. Out: pages, an API, notifications.
Imports: the agent, transport, tools.shared, tools.report, tools.tables, tools.survey.
"""
