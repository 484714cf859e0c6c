// Made by `npm run schema` from the server's table of routes. Do not edit.
export interface paths {
    "/api/workspaces/{workspace}/agents": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the agents of the user and of the workspace. */
        get: operations["get_workspaces_by_workspace_agents"];
        put?: never;
        /** Creates a new agent as a starting point. */
        post: operations["post_workspaces_by_workspace_agents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows an agent: persona, rules, references, tools, memory, files and problems. */
        get: operations["get_workspaces_by_workspace_agents_by_agent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}/files/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reads a file of the agent, with its etag. */
        get: operations["get_workspaces_by_workspace_agents_by_agent_files_by_path"];
        /** Writes a file of the agent, if it has not changed since. */
        put: operations["put_workspaces_by_workspace_agents_by_agent_files_by_path"];
        post?: never;
        /** Deletes a rule or a reference, if it has not changed since. */
        delete: operations["delete_workspaces_by_workspace_agents_by_agent_files_by_path"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}/include": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Changes when a rule or a reference is part of requests. */
        post: operations["post_workspaces_by_workspace_agents_by_agent_include"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Checks the agent's files for problems. */
        post: operations["post_workspaces_by_workspace_agents_by_agent_check"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}/select": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Shows what a question would select, and near misses. */
        post: operations["post_workspaces_by_workspace_agents_by_agent_select"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows how the agent's items were used across its sessions. */
        get: operations["get_workspaces_by_workspace_agents_by_agent_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/agents/{agent}/trust": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows what the agent's folder brings, and whether it is trusted. */
        get: operations["get_workspaces_by_workspace_agents_by_agent_trust"];
        put?: never;
        /** Trusts the folder as it was shown. */
        post: operations["post_workspaces_by_workspace_agents_by_agent_trust"];
        /** Stops trusting the folder. */
        delete: operations["delete_workspaces_by_workspace_agents_by_agent_trust"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/fork": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Creates a new session that starts with this one's path. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_fork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/navigate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Continues at another entry. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_navigate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/labels/{entry}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Labels an entry. */
        put: operations["put_workspaces_by_workspace_sessions_by_session_labels_by_entry"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reports the session's cache misses, why, and their cost. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_doctor"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/doctor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reports on files of any program, which are not stored. */
        post: operations["post_doctor"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/doctor/machine": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Reports on all sessions of this machine, as a job. */
        post: operations["post_doctor_machine"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/doctor/sample": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Reports on an invented sample. */
        get: operations["get_doctor_sample"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/items": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists rules, references and tools: the session's and addable ones; its pins. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_items"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/items/add": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adds a rule, a reference or a tool to the session. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_items_add"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/items/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Removes a rule, a reference or a tool from the session. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_items_remove"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/items/pin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Pins an item: essential, and named with every question. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_items_pin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/items/unpin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Removes a pin. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_items_unpin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/items/adopt": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Adopts the changes in the files of the session's agent. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_items_adopt"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists all settings, with allowed values and descriptions. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_settings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /** Changes settings from the next question on. */
        patch: operations["patch_workspaces_by_workspace_sessions_by_session_settings"];
        trace?: never;
    };
    "/api/jobs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists running and recent jobs. */
        get: operations["get_jobs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Streams a job's progress: `progress`, and finally `end` or `failed`. */
        get: operations["get_jobs_by_job_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/jobs/{job}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Stops a job. */
        delete: operations["delete_jobs_by_job"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/memory": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the memory for every session. */
        get: operations["get_memory"];
        /** Writes the memory, if it has not changed since. */
        put: operations["put_memory"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/targets": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists targets for questions, with prices and windows. */
        get: operations["get_targets"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the models that run on this machine, or could. */
        get: operations["get_models"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{name}/fetch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Downloads a model, as a job. */
        post: operations["post_models_by_name_fetch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/models/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Removes a model from this machine. */
        delete: operations["delete_models_by_name"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists which providers have a key, and where; never the keys. */
        get: operations["get_keys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Stores a key in the system's keyring. */
        put: operations["put_keys_by_provider"];
        post?: never;
        /** Removes a key from the system's keyring. */
        delete: operations["delete_keys_by_provider"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/keys/{provider}/try": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Tests a key with a free call. */
        post: operations["post_keys_by_provider_try"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns rows of the active path; without `from` and `around`, the last ones. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_messages"];
        put?: never;
        /** Sends a message while a turn runs. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/find": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Finds rows of the active path that contain given words. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_find"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/results/{call}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a tool's full result, including what was not sent. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_results_by_call"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/notes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Finds matching passages in notes, with scores. */
        get: operations["get_workspaces_by_workspace_notes"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/notes/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a note with its headings, links and backlinks. */
        get: operations["get_workspaces_by_workspace_notes_by_path"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/notes-check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Checks the notes for broken links and other problems. */
        get: operations["get_workspaces_by_workspace_notes_check"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/complete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Completes an @ mention. */
        get: operations["get_workspaces_by_workspace_complete"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/index": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Indexes all notes for search by meaning, as a job. */
        post: operations["post_workspaces_by_workspace_index"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/files/{path}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a file; pictures are shown, other files downloaded. */
        get: operations["get_workspaces_by_workspace_files_by_path"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Previews what a message would send, digest for digest. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_preview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Previews the first message of a new session. */
        post: operations["post_workspaces_by_workspace_preview"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists every request of the session, on every branch. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_requests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/requests/{request}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a request: its layers, and every segment with the text sent. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_requests_by_request"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/requests/{request}/wire": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a request in its vendor's own form. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_requests_by_request_wire"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/requests/{before}/difference/{after}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compares two requests: the first byte that moved, why, and the cost. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_requests_by_before_difference_by_after"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/context/{request}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the context of a request, and why each item was included. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_context_by_request"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/timeline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows every request with its cache use, and every priced break. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/tree": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows the branches of the session as a map. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_tree"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Verifies that every request can be rebuilt byte for byte. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_verify"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the sessions of a workspace, most recently written first. */
        get: operations["get_workspaces_by_workspace_sessions"];
        put?: never;
        /** Starts a session. */
        post: operations["post_workspaces_by_workspace_sessions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows a session's state: its target, its turn, what waits. */
        get: operations["get_workspaces_by_workspace_sessions_by_session"];
        put?: never;
        post?: never;
        /** Deletes a session and everything only it uses. */
        delete: operations["delete_workspaces_by_workspace_sessions_by_session"];
        options?: never;
        head?: never;
        /** Renames a session. */
        patch: operations["patch_workspaces_by_workspace_sessions_by_session"];
        trace?: never;
    };
    "/api/workspaces/{workspace}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Streams changes of sessions' states: `session` and `ping`. */
        get: operations["get_workspaces_by_workspace_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/spending": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows what the session cost, and what is reserved for it. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_spending"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/spending": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Shows spending by day, model or session. */
        get: operations["get_spending"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/import": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Imports another program's file as a session. */
        post: operations["post_workspaces_by_workspace_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Exports the session as a file. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_export"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/blobs/{digest}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Returns a picture of the session. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_blobs_by_digest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/turns": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Asks a question. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_turns"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/edit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Edits an earlier question on a new branch. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_edit"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/regenerate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Generates an answer again on a new branch. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_regenerate"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Continues an interrupted turn. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_resume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/compact": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Replaces older history with a summary. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_compact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/turns/{turn}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Streams a turn's numbered events, from Last-Event-ID on. Ends with `end` or `failed`. */
        get: operations["get_workspaces_by_workspace_sessions_by_session_turns_by_turn_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/turns/{turn}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Stops a turn; its partial answer is kept. */
        delete: operations["delete_workspaces_by_workspace_sessions_by_session_turns_by_turn"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}/sessions/{session}/calls/{call}/decision": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Decides a waiting call; after the last one, the turn continues. */
        post: operations["post_workspaces_by_workspace_sessions_by_session_calls_by_call_decision"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Describes the caller and this server. */
        get: operations["get_me"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the workspace folders, most recently opened first. */
        get: operations["get_workspaces"];
        put?: never;
        /** Adds a folder to work in. */
        post: operations["post_workspaces"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/workspaces/{workspace}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Forgets a folder; its files and sessions stay. */
        delete: operations["delete_workspaces_by_workspace"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/folders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Lists the folders in a folder, to choose one. */
        get: operations["get_folders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Aborted
         * @description Whether there was something to stop.
         */
        Aborted: {
            aborted: boolean;
        };
        /**
         * AdoptedRows
         * @description The changes that the session adopted from its agent's files.
         */
        AdoptedRows: {
            changes: components["schemas"]["AgentChangeRow"][];
        };
        /**
         * Advice
         * @description A fix and its potential savings.
         */
        Advice: {
            /** @enum {unknown} */
            cause: "below_minimum" | "boundary" | "clock" | "compaction" | "fan_out" | "first_message" | "gateway" | "history_edited" | "idle" | "image" | "key_order" | "look_back" | "marker" | "model" | "other_machine" | "parameter" | "rewound" | "system_changed" | "thinking" | "tools_changed" | "tools_reordered" | "trimmed" | "unexplained" | "update" | "whitespace";
            findings: number;
            saves: number;
            fix: string;
        };
        /**
         * AgentCard
         * @description An agent in a list. `id` identifies it: its name, or its place and name if another agent of
         *         that name comes first, which `is_shadowed` says.
         */
        AgentCard: {
            id: string;
            name: string;
            /** @enum {unknown} */
            where: "folder" | "user" | "workspace";
            path: string;
            description: string;
            model: string;
            rules: number;
            references: number;
            skills: number;
            servers: number;
            projects: number;
            errors: number;
            warnings: number;
            problem: string;
            is_shadowed: boolean;
        };
        /**
         * AgentChangeRow
         * @description A difference between the session and its agent's files: the include mode `here` and `now`,
         *         and a description. Without `here` the item is new; without `now` it is gone.
         */
        AgentChangeRow: {
            item: string;
            label: string;
            here: string | null;
            now: string | null;
            detail: string;
        };
        /**
         * AgentCheck
         * @description The problems and oddities of an agent.
         */
        AgentCheck: {
            problems: components["schemas"]["Problem"][];
            errors: number;
            warnings: number;
        };
        /**
         * AgentChoice
         * @description An agent's choice for a question. `tokens` counts the items that search chose, `always` those
         *         included anyway. `method` says whether meaning or only words were compared.
         */
        AgentChoice: {
            question: string;
            preset: string;
            method: string;
            items: components["schemas"]["ChosenItem"][];
            near: components["schemas"]["NearMiss"][];
            tokens: number;
            always: number;
            warnings: string[];
        };
        /**
         * AgentFile
         * @description A text file of an agent; `etag` is the sha256 of its bytes.
         */
        AgentFile: {
            path: string;
            text: string;
            etag: string;
            bytes: number;
            tokens: number;
        };
        /**
         * AgentFileRow
         * @description A file of an agent's folder; `kind` says what an agent reads it as.
         */
        AgentFileRow: {
            path: string;
            bytes: number;
            /** @enum {unknown} */
            kind: "agent" | "memory" | "other" | "persona" | "reference" | "rule" | "servers" | "skill";
        };
        /**
         * AgentList
         * @description The agents of a workspace, and the folders that new ones are written to.
         */
        AgentList: {
            agents: components["schemas"]["AgentCard"][];
            user_folder: string;
            workspace_folder: string;
        };
        /**
         * AgentPage
         * @description Everything about an agent. `place` is the folder or file it was read from; `search` and
         *         `tool_search` say how it chooses rules and references, and tools.
         */
        AgentPage: {
            card: components["schemas"]["AgentCard"];
            version: string;
            place: string;
            is_folder: boolean;
            parts: components["schemas"]["NamedText"][];
            memory: string;
            settings: Record<string, never>;
            options: Record<string, never>;
            search: components["schemas"]["SearchSettings"];
            tool_search: components["schemas"]["SearchSettings"];
            tool_policy: string;
            guides: components["schemas"]["GuideEntry"][];
            servers: components["schemas"]["ServerEntry"][];
            skills: components["schemas"]["SkillEntry"][];
            projects: string[];
            relations: {
                [key: string]: string[];
            };
            files: components["schemas"]["AgentFileRow"][];
            notes: string[];
            problems: components["schemas"]["Problem"][];
        };
        /**
         * AgentUse
         * @description The use of one agent's items; without a name, of sessions without an agent.
         */
        AgentUse: {
            agent: string;
            sessions: number;
            turns: number;
            /** @default [] */
            items: components["schemas"]["ItemUse"][];
        };
        /**
         * Agreement
         * @description The extent to which this request agrees with the last one sent on this path.
         */
        Agreement: {
            /** @default 0 */
            segments: number;
            /** @default 0 */
            tokens: number;
            /** @default 0 */
            reprocessed: number;
            /** @default null */
            broke: components["schemas"]["Break"] | null;
            /** @default false */
            first: boolean;
            /** @default [] */
            unexplained: components["schemas"]["MovedPlace"][];
        };
        /**
         * AlsoSent
         * @description Other contents of a request, by kind: notes, memory, history and so on.
         */
        AlsoSent: {
            what: string;
            label: string;
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            count: number;
            tokens: number;
        };
        /**
         * AnswerChanged
         * @description An answer was changed after its blocks were reported, by hooks that had not declared this:
         *         `text` is kept instead.
         */
        AnswerChanged: {
            /** @enum {unknown} */
            type: "answer_changed";
            hooks: string[];
            text: string;
        };
        /**
         * AnswerHeld
         * @description An answer arrives but is held back for hooks that change answers: the blocks follow once the
         *         hooks are done.
         */
        AnswerHeld: {
            /** @enum {unknown} */
            type: "answer_held";
            hooks: string[];
        };
        /**
         * ApprovalDecided
         * @description A person decided on a call.
         */
        ApprovalDecided: {
            /** @enum {unknown} */
            type: "decision";
            call_id: string;
            /** @enum {unknown} */
            decision: "allow_once" | "allow_session" | "deny";
        };
        /**
         * ApprovalWanted
         * @description A call waits for a decision.
         */
        ApprovalWanted: {
            /** @enum {unknown} */
            type: "approval";
            call: components["schemas"]["ToolCall"];
            tool: components["schemas"]["OfferedTool"];
        };
        /**
         * AttachedRow
         * @description An attachment of a question: in full, or only named because it stood above. With `absent`,
         *         why the model did not get it.
         */
        AttachedRow: {
            item: string;
            label: string;
            /** @enum {unknown} */
            form: "full" | "named";
            /** @enum {unknown} */
            shape: "active" | "attached" | "web_tab";
            absent: string;
            digest: string;
        };
        /**
         * AvailableRow
         * @description An item that can be added. `removed` says that a person removed it.
         */
        AvailableRow: {
            item: string;
            include: string;
            /** @default  */
            about: string;
            /** @default [] */
            globs: string[];
            /** @default false */
            removed: boolean;
            label: string;
        };
        /**
         * BackLink
         * @description A note that links to another one.
         */
        BackLink: {
            path: string;
            title: string;
        };
        /**
         * BlockDelta
         * @description More text for a block of the answer.
         */
        BlockDelta: {
            /** @enum {unknown} */
            type: "block_delta";
            index: number;
            text: string;
        };
        /**
         * BlockEnded
         * @description A block of the answer is complete.
         */
        BlockEnded: {
            /** @enum {unknown} */
            type: "block_end";
            index: number;
        };
        /**
         * BlockStarted
         * @description A new block of the answer starts; an action is a tool call being written.
         */
        BlockStarted: {
            /** @enum {unknown} */
            type: "block_start";
            index: number;
            /** @enum {unknown} */
            kind: "action" | "text" | "thinking";
            /** @default  */
            name: string;
        };
        /**
         * Boundary
         * @description A point at which the prefix is dead anyway, or at which discarding it pays off.
         */
        Boundary: {
            /** @enum {unknown} */
            kind: "compaction" | "damage" | "expired" | "first_request" | "history" | "manual" | "model_change" | "promotion" | "renderer_change" | "settings_change" | "system_change" | "tools_change" | "window" | "wire_change";
            reason: string;
        };
        /**
         * BranchMap
         * @description All nodes in the order they were written. `leaf` is the entry after which the session
         *         continues, `node` the last node on the way to it.
         */
        BranchMap: {
            session: string;
            leaf: string;
            node: string;
            nodes: components["schemas"]["BranchNode"][];
            branches: number;
            other_messages: number;
        };
        /**
         * BranchNode
         * @description A place on the map. An answer covers all steps of its turn: `calls` counts their tool calls.
         *         `tokens` counts the request that it answers, by our count; `tokens_before` and `tokens_after`
         *         are those of the requests around a compaction. `is_leaf` marks the session's position;
         *         `can_resume` says that the request there has no answer yet. `children` counts the nodes right
         *         below it.
         */
        BranchNode: {
            id: string;
            parent: string;
            /** @enum {unknown} */
            kind: "answer" | "compaction" | "question" | "start" | "summary" | "unanswered";
            at: number;
            text: string;
            active: boolean;
            label: string;
            request: string;
            target: string;
            tokens: number | null;
            tokens_before: number | null;
            tokens_after: number | null;
            calls: number;
            interrupted: boolean;
            is_leaf: boolean;
            can_resume: boolean;
            depth: number;
            children: number;
        };
        /**
         * Break
         * @description The first difference between this request and what was sent before. `reason` is the recorded
         *         reason for everything that moved.
         */
        Break: {
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            segment: number;
            source: string;
            reason: string;
            /** @default  */
            before: string;
        };
        /**
         * BreakSum
         * @description All breaks of one cause. `unpriced` of them are not in `price`.
         */
        BreakSum: {
            /** @enum {unknown} */
            kind: "expected" | "expired" | "missed" | "moved";
            breaks: number;
            tokens: number;
            price: number | null;
            unpriced: number;
        };
        /**
         * CacheRewrite
         * @description Cached content that is written again: the number of tokens, the reason, and the extra cost
         *         over reading them, in US dollars.
         */
        CacheRewrite: {
            /** @enum {unknown} */
            kind: "compaction" | "damage" | "expired" | "first_request" | "history" | "manual" | "model_change" | "promotion" | "renderer_change" | "settings_change" | "system_change" | "tools_change" | "window" | "wire_change";
            reason: string;
            tokens: number;
            price: number;
        };
        /**
         * CacheTimeline
         * @description The whole timeline; prices are those of the day `prices_of`.
         */
        CacheTimeline: {
            session: string;
            rows: components["schemas"]["TimelineRow"][];
            totals: components["schemas"]["TimelineTotals"];
            prices_of: string;
        };
        /**
         * CacheVerdict
         * @description The cached tokens that the provider reported, compared with those expected.
         */
        CacheVerdict: {
            expected: number;
            reported: number;
            /** @enum {unknown} */
            meaning: "as_expected" | "below_minimum" | "lifetime_passed" | "model_changed" | "more_than_expected" | "not_reported" | "nothing_sent_before" | "prefix_moved" | "routed_elsewhere";
            detail: string;
        };
        /**
         * CallRow
         * @description A tool call in an answer, and its outcome. `result` is shortened; `is_cut` says that there is
         *         more to read. `seconds` is None if unknown.
         */
        CallRow: {
            id: string;
            name: string;
            label: string;
            arguments: string;
            /** @enum {unknown} */
            state: "denied" | "done" | "error" | "running" | "waiting";
            result: string;
            is_cut: boolean;
            decision: string | null;
            seconds: number | null;
        };
        /**
         * CallView
         * @description A call that waits for a decision. `arguments` is the JSON text written by the model; with a
         *         `decision`, only other calls of its turn still wait.
         */
        CallView: {
            id: string;
            name: string;
            label: string;
            server: string;
            about: string;
            arguments: string;
            decision: string | null;
        };
        /**
         * CauseSum
         * @description The findings with one cause, or at one place if the cause is undecided.
         */
        CauseSum: {
            /** @enum {unknown} */
            cause: "below_minimum" | "boundary" | "clock" | "compaction" | "fan_out" | "first_message" | "gateway" | "history_edited" | "idle" | "image" | "key_order" | "look_back" | "marker" | "model" | "other_machine" | "parameter" | "rewound" | "system_changed" | "thinking" | "tools_changed" | "tools_reordered" | "trimmed" | "unexplained" | "update" | "whitespace";
            label: string;
            /** @enum {unknown} */
            kind: "expected" | "expired" | "missed" | "moved";
            blame: ("nobody" | "tool" | "vendor" | "you") | null;
            findings: number;
            tokens: number;
            extra: number | null;
            avoidable: number | null;
            certainties: {
                [key: string]: number;
            };
            /** @default 0 */
            unpriced: number;
        };
        /**
         * ChosenItem
         * @description An item that a question would bring. `part` is the best-matching part of the question,
         *         `chunk` the matching text.
         */
        ChosenItem: {
            item: string;
            kind: string;
            name: string;
            server: string;
            include: string;
            score: number | null;
            origin: string;
            source: string;
            part: string;
            chunk: string;
            why: string;
            tokens: number;
        };
        /**
         * CompactionDone
         * @description The result of a compaction requested by a person.
         */
        CompactionDone: {
            /** @enum {unknown} */
            type: "compaction";
            changed: boolean;
            reason: string;
            summary: string;
            by: string;
            messages: number;
            tokens_dropped: number;
            problem: string;
        };
        /**
         * CompactionView
         * @description A compaction: who made the summary and why, what it replaces, and the tokens of history
         *         before and after, if known.
         */
        CompactionView: {
            by: string;
            reason: string;
            summary: string;
            messages: number;
            tokens_before: number | null;
            tokens_after: number | null;
            before: string;
        };
        /**
         * ComparedSegment
         * @description A segment of either request. `agrees`: nothing before it moved.
         */
        ComparedSegment: {
            index: number;
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            source: string;
            label: string;
            tokens: number;
            digest: string;
            /** @enum {unknown} */
            status: "added" | "kept" | "removed";
            agrees: boolean;
        };
        /**
         * Completion
         * @description Something that can follow an `@`: `insert` is the text to type, with its mark; `attach` is
         *         what is attached, empty for a rule or a reference, which is named in the text.
         */
        Completion: {
            /** @enum {unknown} */
            kind: "file" | "folder" | "reference" | "rule" | "tag";
            label: string;
            detail: string;
            insert: string;
            attach: string;
        };
        /**
         * Completions
         * @description Completions, best first.
         */
        Completions: {
            query: string;
            items: components["schemas"]["Completion"][];
        };
        /**
         * ContextItem
         * @description One item of a request: its position and cost, and why it is included or left out.
         */
        ContextItem: {
            item: string;
            version: string;
            label: string;
            /** @enum {unknown} */
            placement: "above" | "left_out" | "library" | "message";
            layer: ("L1" | "L2" | "L3" | "L4" | "L5" | "tools") | null;
            tokens: number;
            priority: number;
            /** @default false */
            essential: boolean;
            /** @default false */
            pinned: boolean;
            /**
             * @default manual
             * @enum {unknown}
             */
            include: "agent" | "always" | "manual";
            /** @default  */
            reason: string;
            /** @default null */
            score: number | null;
            /** @default  */
            origin: string;
            /** @default  */
            source: string;
            /** @default null */
            level: number | null;
            /** @default null */
            priority_before: number | null;
        };
        /**
         * ContextRecord
         * @description The context of one request. `near_note` says what `near` is, or why it is empty.
         */
        ContextRecord: {
            session: string;
            request: components["schemas"]["RequestSummary"];
            of: number;
            previous: string;
            next: string;
            question_number: number;
            questions: number;
            question: string;
            rules: components["schemas"]["ReasonRow"][];
            references: components["schemas"]["ReasonRow"][];
            tools: components["schemas"]["ReasonRow"][];
            items: components["schemas"]["ContextItem"][];
            also_sent: components["schemas"]["AlsoSent"][];
            left_out: components["schemas"]["LeftOut"][];
            near: components["schemas"]["NearMiss"][];
            near_note: string;
            found: components["schemas"]["NoteSearchRecord"] | null;
            searches: components["schemas"]["NoteSearchRecord"][];
            planned: components["schemas"]["PlannedCall"][];
            boundaries: components["schemas"]["Boundary"][];
            fit: components["schemas"]["Fit"];
            cached: number | null;
            options: Record<string, never>;
            citations: number[];
            warnings: string[];
            displays: components["schemas"]["HookDisplay"][];
            proven: boolean;
            problems: string[];
            /** @default [] */
            agent_changes: components["schemas"]["AgentChangeRow"][];
        };
        /**
         * ContextTool
         * @description A tool in a request's list. A tool marked `kept` joined for an earlier question; one chosen
         *         after the list could no longer change is listed among the items instead.
         */
        ContextTool: {
            item: string;
            /** @default  */
            name: string;
            /** @default 0 */
            tokens: number;
            /**
             * @default always
             * @enum {unknown}
             */
            include: "agent" | "always" | "manual";
            /** @default null */
            score: number | null;
            /** @default  */
            origin: string;
            /** @default  */
            source: string;
            /** @default false */
            kept: boolean;
        };
        /**
         * CostRange
         * @description The minimum and maximum cost of a request, in US dollars.
         */
        CostRange: {
            low: number;
            high: number;
        };
        /**
         * Damage
         * @description One defect. `line` counts from 1; `offset` and `length` are in bytes. For database rows,
         *         `row` also counts from 1, and the other fields give the position in an export: a journal records
         *         the same position, however it is stored.
         */
        Damage: {
            /** @enum {unknown} */
            kind: "bad_header" | "bad_page" | "checksum" | "conflict" | "duplicate" | "incomplete_write" | "line_endings" | "lost_item" | "lost_question" | "lost_reply" | "lost_results" | "lost_setting" | "missing_entries" | "missing_parent" | "no_checksum" | "no_final_newline" | "no_line_break" | "not_an_entry" | "not_applicable" | "nul_bytes" | "torn" | "unknown_type";
            detail: string;
            /** @default 0 */
            line: number;
            /** @default 0 */
            offset: number;
            /** @default 0 */
            length: number;
            /** @default 0 */
            row: number;
        };
        /** DecisionBody */
        DecisionBody: {
            /** @enum {unknown} */
            decision: "allow_once" | "allow_session" | "deny";
        };
        /**
         * DecisionKept
         * @description The decision, the calls that still wait, and the turn that continues if none does.
         */
        DecisionKept: {
            call_id: string;
            /** @enum {unknown} */
            decision: "allow_once" | "allow_session" | "deny";
            waiting: string[];
            turn: string | null;
        };
        /**
         * DeletedRow
         * @description What a deletion removed: bytes of the journal, its own blobs, and the embedded model's
         *         memory of it.
         */
        DeletedRow: {
            session: string;
            bytes: number;
            blobs: number;
            slot_bytes: number;
        };
        /**
         * DifferenceLine
         * @description A line of the texts before and after, with its number in either; a `gap` stands for lines
         *         that both have.
         */
        DifferenceLine: {
            /** @enum {unknown} */
            mark: "added" | "gap" | "removed" | "same";
            text: string;
            before: number | null;
            after: number | null;
        };
        /**
         * Display
         * @description The display of a patch for a person. `data` is for programs: any JSON value. A user interface
         *         that supports the renderer `renderer_id` may draw it from `renderer_props`, and one with a chat
         *         may show it there if `show_in_chat` is set; all others show the strings.
         */
        Display: {
            title: string;
            /** @default  */
            summary: string;
            /** @default  */
            markdown: string;
            /** @default null */
            data: unknown;
            /** @default  */
            renderer_id: string;
            /** @default null */
            renderer_props: unknown;
            /** @default false */
            show_in_chat: boolean;
        };
        /**
         * DoctorMachine
         * @description `since` as `30d` or a date; empty for everything.
         */
        DoctorMachine: {
            /** @default  */
            since: string;
            /** @default false */
            text: boolean;
        };
        /**
         * DoctorPage
         * @description A report as a page shows it. `with_text` says that it contains texts of sessions; `is_cut`
         *         that there are more findings or requests than listed; the most expensive findings come first.
         */
        DoctorPage: {
            lamina: string;
            prices_of: string;
            with_text: boolean;
            is_cut: boolean;
            programs: string[];
            read: components["schemas"]["ReadFiles"];
            totals: components["schemas"]["ReportTotals"];
            lost_share: number;
            causes: components["schemas"]["CauseSum"][];
            findings: components["schemas"]["FindingRow"][];
            fixes: components["schemas"]["Advice"][];
            unknowns: components["schemas"]["Unknown"][];
            sessions: components["schemas"]["SessionSum"][];
            requests: components["schemas"]["RequestFigures"][];
        };
        /** DoctorUpload */
        DoctorUpload: {
            files: components["schemas"]["UploadedFile"][];
            /** @default false */
            text: boolean;
        };
        /**
         * Done
         * @description Whether anything changed.
         */
        Done: {
            changed: boolean;
        };
        /**
         * EarlierText
         * @description The text that a segment replaced, or an older version that still stands above it.
         */
        EarlierText: {
            source: string;
            digest: string;
            text: string;
            is_gone: boolean;
            request: number | null;
        };
        /**
         * EditedQuestion
         * @description A question edited and asked again. Without `attach` and `essential`, its attachments are sent
         *         again.
         */
        EditedQuestion: {
            question: string;
            text: string;
            /** @default null */
            attach: string[] | null;
            /** @default null */
            essential: string[] | null;
            /** @default null */
            target: string | null;
        };
        /**
         * ErrorAnswer
         * @description The answer of every route that cannot do what was asked.
         */
        ErrorAnswer: {
            error: components["schemas"]["ErrorBody"];
        };
        /**
         * ErrorBody
         * @description What was wrong: a stable code, a sentence, and the fields concerned.
         */
        ErrorBody: {
            code: string;
            message: string;
            /** @default [] */
            fields: string[];
        };
        /**
         * Evidence
         * @description The evidence for a question's best match, and how much is needed.
         */
        Evidence: {
            found: number;
            needed: number;
        };
        /**
         * FileProblem
         * @description A file or line that could not be read.
         */
        FileProblem: {
            file: string;
            line: number | null;
            what: string;
            detail: string;
        };
        /**
         * FindingPlace
         * @description The place of a break. Tokens `start` to `end` of the previous request were not read again;
         *         `segment` and `offset` (in bytes) are set if the bytes are known.
         */
        FindingPlace: {
            /** @default null */
            stopped: ("end_of" | "floor" | "inside" | "nothing") | null;
            /** @default null */
            request: number | null;
            start: number;
            end: number;
            /** @default null */
            layer: ("messages" | "system" | "tools") | null;
            /** @default  */
            segment: string;
            /** @default null */
            offset: number | null;
        };
        /**
         * FindingRow
         * @description One loss. `before` and `after` are the content at that byte, as a digest or as text. Money is
         *         in US dollars at list price; `extra` is the extra cost over reading the same tokens.
         */
        FindingRow: {
            id: string;
            at: number | null;
            source: string;
            session: string;
            agent: string;
            request: number;
            request_id: string;
            file: string;
            line: number;
            model: string;
            /** @enum {unknown} */
            record: "bodies" | "transcript" | "usage";
            /** @enum {unknown} */
            kind: "expected" | "expired" | "missed" | "moved";
            /** @enum {unknown} */
            cause: "below_minimum" | "boundary" | "clock" | "compaction" | "fan_out" | "first_message" | "gateway" | "history_edited" | "idle" | "image" | "key_order" | "look_back" | "marker" | "model" | "other_machine" | "parameter" | "rewound" | "system_changed" | "thinking" | "tools_changed" | "tools_reordered" | "trimmed" | "unexplained" | "update" | "whitespace";
            blame: ("nobody" | "tool" | "vendor" | "you") | null;
            /** @enum {unknown} */
            certainty: "likely" | "located" | "proven" | "unknown";
            candidates: ("below_minimum" | "boundary" | "clock" | "compaction" | "fan_out" | "first_message" | "gateway" | "history_edited" | "idle" | "image" | "key_order" | "look_back" | "marker" | "model" | "other_machine" | "parameter" | "rewound" | "system_changed" | "thinking" | "tools_changed" | "tools_reordered" | "trimmed" | "unexplained" | "update" | "whitespace")[];
            detail: string;
            place: components["schemas"]["FindingPlace"];
            before: string | null;
            after: string | null;
            tokens: number;
            paid: number | null;
            would_have_cost: number | null;
            avoidable: boolean | null;
            avoidable_cost: number | null;
            fix: string;
            /** @default null */
            chance: number | null;
            /** @default  */
            sign: string;
            /** @default null */
            gap: number | null;
            program: string;
            label: string;
            sentence: string;
            extra: number | null;
        };
        /**
         * Fit
         * @description The budget of a request: the size of each part, and the limit.
         */
        Fit: {
            window: number;
            reserve: number;
            tokens: number;
            /** @default 1 */
            calibration: number;
        };
        /**
         * FolderListing
         * @description The folders in a folder, to choose one. `notes` counts Markdown files directly in it,
         *         `problem` says why it cannot be listed.
         */
        FolderListing: {
            path: string;
            parent: string | null;
            home: string;
            folders: components["schemas"]["FolderRow"][];
            notes: number;
            problem: string;
        };
        /**
         * FolderRow
         * @description A folder in a folder.
         */
        FolderRow: {
            name: string;
            path: string;
            is_hidden: boolean;
        };
        /**
         * ForkBody
         * @description The last entry to copy; without one, the whole active path.
         */
        ForkBody: {
            /** @default null */
            at: string | null;
            /** @default  */
            name: string;
        };
        /** Forked */
        Forked: {
            session: string;
        };
        /**
         * FoundPassage
         * @description A passage found by search, with its citation number.
         */
        FoundPassage: {
            number: number | null;
            path: string;
            heading: string;
            start: number | null;
            end: number | null;
            score: number | null;
        };
        /**
         * FoundRow
         * @description A row that contains the words, with some surrounding text.
         */
        FoundRow: {
            id: string;
            index: number;
            /** @enum {unknown} */
            kind: "added" | "answer" | "compaction" | "notice" | "question" | "results";
            excerpt: string;
        };
        /**
         * FoundRows
         * @description `total` counts all rows that contain the words; only the first are listed.
         */
        FoundRows: {
            rows: components["schemas"]["FoundRow"][];
            total: number;
        };
        /**
         * GivenTrust
         * @description The digest of what the person was shown.
         */
        GivenTrust: {
            digest: string;
        };
        /**
         * GoneSegment
         * @description A segment of the previous request that is not in this one.
         */
        GoneSegment: {
            index: number;
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            source: string;
            label: string;
            tokens: number;
            digest: string;
            /** @enum {unknown} */
            role: "assistant" | "system" | "tool" | "tools" | "user";
            text: string;
        };
        /**
         * GuideEntry
         * @description A rule or a reference. `file` is its path in the agent's folder, empty if it is elsewhere.
         */
        GuideEntry: {
            /** @enum {unknown} */
            kind: "reference" | "rule";
            name: string;
            level: number;
            /** @enum {unknown} */
            include: "agent" | "always" | "manual";
            tokens: number;
            description: string;
            globs: string[];
            place: string;
            item: string;
            file: string;
            line: number | null;
        };
        /**
         * HistoryPrice
         * @description The cost of history when the cached prefix is dead: reading it again in full, or with a
         *         summary in place of its older part. In US dollars; None if a price is unknown.
         */
        HistoryPrice: {
            tokens: number;
            /** @default null */
            keep_cost: number | null;
            /** @default 0 */
            older_tokens: number;
            /** @default 0 */
            summary_tokens: number;
            /** @default null */
            summary_cost: number | null;
            /** @default null */
            summary_saving: number | null;
            /** @default false */
            is_summarised: boolean;
        };
        /**
         * HookDisplay
         * @description The display of a patch, and the hook it belongs to.
         */
        HookDisplay: {
            hook: string;
            display: components["schemas"]["Display"];
        };
        /**
         * HookShown
         * @description A hook has information about its change for a person.
         */
        HookShown: {
            /** @enum {unknown} */
            type: "display";
            hook: string;
            display: components["schemas"]["Display"];
        };
        /**
         * ImportedRow
         * @description The imported session.
         */
        ImportedRow: {
            session: string;
            source: string;
            entries: number;
            problems: string[];
            laid: string[];
        };
        /**
         * IncludeChange
         * @description When a rule or a reference, by its item id, is part of requests from now on.
         */
        IncludeChange: {
            item: string;
            /** @enum {unknown} */
            include: "agent" | "always" | "manual";
            /** @default  */
            etag: string;
        };
        /**
         * ItemName
         * @description A member as `rule:NAME`, `ref:NAME` or `tool:SERVER/NAME`; for a pin, its path.
         */
        ItemName: {
            what: string;
        };
        /**
         * ItemRows
         * @description The session's items, items it can add, its pins, how its agent's files differ, and
         *         problems.
         */
        ItemRows: {
            items: components["schemas"]["MemberRow"][];
            available: components["schemas"]["AvailableRow"][];
            pins: components["schemas"]["PinnedRow"][];
            changes: components["schemas"]["AgentChangeRow"][];
            problems: string[];
        };
        /**
         * ItemUse
         * @description The use of one item. `turns` counts the turns in which it was in force, by mode; `since`
         *         counts all turns from the first of these on; `needed` counts those in which it was used although
         *         it is not always included; `score` is the mean of its scores when chosen.
         */
        ItemUse: {
            item: string;
            /** @default 0 */
            turns: number;
            /** @default 0 */
            always: number;
            /** @default 0 */
            manual: number;
            /** @default 0 */
            agent: number;
            /** @default 0 */
            chosen: number;
            /** @default null */
            score: number | null;
            /** @default 0 */
            used: number;
            /** @default 0 */
            needed: number;
            /** @default 0 */
            since: number;
            /** @default 0 */
            sessions: number;
            /** @default  */
            suggestion: string;
        };
        /**
         * JobEnd
         * @description A job has ended; `result` is its result.
         */
        JobEnd: {
            /** @enum {unknown} */
            type: "end";
            /** @enum {unknown} */
            state: "done" | "failed" | "stopped" | "working";
            /** @default null */
            result: unknown;
        };
        /**
         * JobProgress
         * @description A job's progress: `done` of `total`, both 0 while unknown.
         */
        JobProgress: {
            /** @enum {unknown} */
            type: "progress";
            text: string;
            /** @default 0 */
            done: number;
            /** @default 0 */
            total: number;
        };
        /**
         * JobRow
         * @description One job, as shown to people.
         */
        JobRow: {
            job: string;
            name: string;
            /** @enum {unknown} */
            state: "done" | "failed" | "stopped" | "working";
        };
        /** JobRows */
        JobRows: {
            jobs: components["schemas"]["JobRow"][];
        };
        /**
         * JobStarted
         * @description The answer of a route that starts a job: `/api/jobs/{job}/events` streams its progress.
         */
        JobStarted: {
            job: string;
            name: string;
        };
        /**
         * KeyList
         * @description All providers that use a key. Without a working keyring `keyring` is empty, and `problem`
         *         says what to do instead.
         */
        KeyList: {
            keys: components["schemas"]["KeyRow"][];
            keyring: string;
            problem: string;
        };
        /**
         * KeyRow
         * @description A provider and where its key is, never the key. `variables` are checked for it.
         */
        KeyRow: {
            provider: string;
            variables: string[];
            has_key: boolean;
            /** @enum {unknown} */
            source: "" | "environment" | "keyring";
            variable: string;
            models: number;
        };
        /**
         * KeyTrial
         * @description The result of testing a key.
         */
        KeyTrial: {
            provider: string;
            works: boolean;
            code: string;
            message: string;
            models: number | null;
            seconds: number;
        };
        /**
         * KnownTargets
         * @description Matching targets, the default target, and the price date.
         */
        KnownTargets: {
            targets: components["schemas"]["TargetChoice"][];
            default: string;
            prices_of: string;
        };
        /**
         * LabelBody
         * @description An empty text removes the label.
         */
        LabelBody: {
            text: string;
        };
        /** Labelled */
        Labelled: {
            entry: string;
            text: string;
        };
        /**
         * LayerShare
         * @description A layer of a request. `cached` is None if the provider did not report it.
         */
        LayerShare: {
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            tokens: number;
            segments: number;
            digest: string;
            name: string;
            cached: number | null;
            agree: number;
            new: number;
        };
        /**
         * LayerSize
         * @description The size and digest of one layer of a request.
         */
        LayerSize: {
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            tokens: number;
            segments: number;
            digest: string;
        };
        /**
         * LeftOut
         * @description An item or part left out of the request, and the reason. `what` is an item id or a name.
         */
        LeftOut: {
            what: string;
            /** @enum {unknown} */
            reason: "ambiguous" | "attachment_limit" | "has_images" | "history" | "missing" | "ranked_lower" | "refused" | "removed" | "room_left" | "still_out" | "superseded" | "thinking" | "unreadable" | "window";
            detail: string;
            /** @default 0 */
            tokens: number;
            /** @default  */
            source: string;
            /** @default null */
            score: number | null;
            /** @default null */
            lacking: components["schemas"]["Evidence"] | null;
        };
        /**
         * LocalModelList
         * @description All local models, and the free bytes on their disk.
         */
        LocalModelList: {
            models: components["schemas"]["LocalModelRow"][];
            folder: string;
            free: number;
        };
        /**
         * LocalModelRow
         * @description A model that can be downloaded. `here` says whether all or part of it is on this machine;
         *         sizes are in bytes; `room` is the disk space that a download needs at most. `missing` says
         *         what else must be installed to run it.
         */
        LocalModelRow: {
            name: string;
            /** @enum {unknown} */
            kind: "chat" | "embedding";
            title: string;
            purpose: string;
            maker: string;
            licence: string;
            context: number;
            size: number;
            fetches: number;
            room: number;
            parts: number;
            /** @enum {unknown} */
            here: "no" | "partly" | "yes";
            target: string;
            is_default: boolean;
            missing: string;
        };
        /**
         * Me
         * @description The caller, and this server. `workspace` is the folder it was started in, if any.
         */
        Me: {
            version: string;
            rights: ("admin" | "chat" | "read")[];
            workspace: string;
            default_target: string;
            home: string;
            data_folder: string;
            store: string;
        };
        /**
         * MemberRow
         * @description A rule, a reference or a tool that applies to every question. `missing` means that it was
         *         added, and the agent no longer has it.
         */
        MemberRow: {
            item: string;
            label: string;
            include: string;
            missing: boolean;
            about: string;
        };
        /**
         * MemoryText
         * @description The memory for every session; `etag` is the sha256 of the file, empty without a file.
         */
        MemoryText: {
            text: string;
            etag: string;
            path: string;
            tokens: number;
            problem: string;
        };
        /**
         * MessageRow
         * @description One row of the active path. `siblings` are the entries at its place on all branches, itself
         *         at `place`; `request` is the request of an answer.
         */
        MessageRow: {
            id: string;
            index: number;
            /** @enum {unknown} */
            kind: "added" | "answer" | "compaction" | "notice" | "question" | "results";
            at: number;
            text: string;
            thinking: string[];
            calls: components["schemas"]["CallRow"][];
            attached: components["schemas"]["AttachedRow"][];
            sources: components["schemas"]["SourceRow"][];
            siblings: string[];
            place: number;
            label: string;
            request: string | null;
            target: string;
            usage: components["schemas"]["Usage"] | null;
            cost: number | null;
            verdict: components["schemas"]["CacheVerdict"] | null;
            first_s: number | null;
            total_s: number | null;
            stop: string;
            interrupted: boolean;
            custom_type: string;
            warnings: string[];
            compaction: components["schemas"]["CompactionView"] | null;
        };
        /**
         * MessageTaken
         * @description Whether the message reaches a running turn; if not, it waits for the next one.
         */
        MessageTaken: {
            running: boolean;
        };
        /**
         * MessageWindow
         * @description Some rows of the active path: `first` is the index of the first one, `total` the number of
         *         all rows.
         */
        MessageWindow: {
            rows: components["schemas"]["MessageRow"][];
            first: number;
            total: number;
            leaf: string;
        };
        /**
         * MovedByte
         * @description The first place where two requests differ. `byte` counts from 0 in the texts of all segments
         *         in wire order, `in_segment` in those of this one; `expected` says that it lies beyond the part
         *         that was to be sent again, so nothing is lost.
         */
        MovedByte: {
            byte: number;
            in_segment: number;
            segment: number;
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            layer_name: string;
            source: string;
            label: string;
            source_before: string;
            label_before: string;
            expected: boolean;
            bytes_counted: string;
        };
        /**
         * MovedPlace
         * @description A position at which a request differs from what was sent before, and the earlier content.
         */
        MovedPlace: {
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            segment: number;
            source: string;
            /** @default  */
            before: string;
        };
        /**
         * Mover
         * @description Who moved something: a hook (or an application's patch), the engine itself, or a person, with
         *         the entry that records it.
         */
        Mover: {
            /** @enum {unknown} */
            kind: "engine" | "hook" | "person";
            name: string;
            op: string;
            entry: string;
            reason: string;
        };
        /**
         * NamedText
         * @description A text with its name and its approximate number of tokens.
         */
        NamedText: {
            name: string;
            text: string;
            tokens: number;
        };
        /**
         * NavigateBody
         * @description Where to continue; `summary` summarises the branch being left for the model. With `end`, at
         *         the end of the branch of that entry.
         */
        NavigateBody: {
            entry: string;
            /** @default  */
            summary: string;
            /** @default false */
            end: boolean;
        };
        /**
         * NearMiss
         * @description A narrowly missed item. `score` is its similarity to the question, None if only words were
         *         searched or no score was recorded. Nothing is chosen up to `floor`, everything from `threshold`
         *         on, and the best `most` in between.
         */
        NearMiss: {
            item: string;
            kind: string;
            name: string;
            server: string;
            score: number | null;
            floor: number;
            threshold: number;
            most: number;
            why: string;
            /** @enum {unknown} */
            as_of: "now" | "request";
        };
        /**
         * NewAgent
         * @description A new agent's name; it is created among the user's own or in the workspace.
         */
        NewAgent: {
            name: string;
            /**
             * @default workspace
             * @enum {unknown}
             */
            where: "user" | "workspace";
        };
        /**
         * NewFileText
         * @description The whole text of a file. `etag` is that of the version read; empty for a new file.
         */
        NewFileText: {
            text: string;
            /** @default  */
            etag: string;
        };
        /**
         * NewImport
         * @description Another program's file, as text or in base64.
         */
        NewImport: {
            name: string;
            content: string;
            /**
             * @default text
             * @enum {unknown}
             */
            encoding: "base64" | "text";
        };
        /**
         * NewKey
         * @description A key, which is never returned.
         */
        NewKey: {
            key: string;
        };
        /**
         * NewMemory
         * @description The whole text, and the etag of the version read.
         */
        NewMemory: {
            text: string;
            /** @default  */
            etag: string;
        };
        /**
         * NewPreview
         * @description The first message of a session that does not exist yet.
         */
        NewPreview: {
            /** @default null */
            agent: string | null;
            /** @default null */
            project: string | null;
            /** @default null */
            target: string | null;
            /**
             * @default agent
             * @enum {unknown}
             */
            mode: "agent" | "plan" | "qa";
            /** @default false */
            files: boolean;
            /** @default null */
            web: string | null;
            /** @default  */
            system: string;
            /** @default  */
            name: string;
            /** @default {} */
            settings: Record<string, never>;
            /** @default  */
            text: string;
            /** @default [] */
            attach: string[];
            /** @default [] */
            essential: string[];
        };
        /**
         * NewSession
         * @description A new session. `files` lets the model read and change the folder's files, `web` is where it
         *         searches the web, `settings` are those that differ from the defaults.
         */
        NewSession: {
            /** @default null */
            agent: string | null;
            /** @default null */
            project: string | null;
            /** @default null */
            target: string | null;
            /**
             * @default agent
             * @enum {unknown}
             */
            mode: "agent" | "plan" | "qa";
            /** @default false */
            files: boolean;
            /** @default null */
            web: string | null;
            /** @default  */
            system: string;
            /** @default  */
            name: string;
            /** @default {} */
            settings: Record<string, never>;
        };
        /**
         * NewSettings
         * @description The changed settings, by name; parts use a dotted name.
         */
        NewSettings: {
            settings: Record<string, never>;
        };
        /**
         * NewTurn
         * @description A question; `@` mentions in it are attached as well.
         */
        NewTurn: {
            text: string;
            /** @default [] */
            attach: string[];
            /** @default [] */
            essential: string[];
            /** @default null */
            target: string | null;
        };
        /**
         * NewWorkspace
         * @description The folder to work in; `create` creates it.
         */
        NewWorkspace: {
            path: string;
            /** @default false */
            create: boolean;
        };
        /**
         * NoteCheck
         * @description The problems in the notes of a workspace; `decided` are ambiguous links that were resolved
         *         to the nearest file.
         */
        NoteCheck: {
            notes: number;
            problems: components["schemas"]["NoteProblem"][];
            decided: components["schemas"]["NoteProblem"][];
            counts: {
                [key: string]: number;
            };
        };
        /**
         * NoteHeading
         * @description A heading; `line` counts from 1.
         */
        NoteHeading: {
            level: number;
            text: string;
            line: number;
        };
        /**
         * NoteHit
         * @description A passage found by search. `place` attaches just these lines; `score` is None if it was found
         *         by words.
         */
        NoteHit: {
            path: string;
            title: string;
            heading: string;
            place: string;
            start: number;
            end: number;
            text: string;
            score: number | null;
            mtime: number;
        };
        /**
         * NoteHits
         * @description Search results. `method` is meaning and words, or words alone with the reason.
         */
        NoteHits: {
            query: string;
            method: string;
            by_meaning: boolean;
            searched: number;
            late: number;
            hits: components["schemas"]["NoteHit"][];
            warnings: string[];
        };
        /**
         * NoteLink
         * @description A link as written, and the file it leads to; without `path` it is broken, and `problem` says
         *         why.
         */
        NoteLink: {
            link: string;
            path: string;
            anchor: string;
            is_embed: boolean;
            problem: string;
        };
        /**
         * NotePage
         * @description A note with the text of its file; `is_note` is False for other text files.
         */
        NotePage: {
            path: string;
            title: string;
            text: string;
            etag: string;
            bytes: number;
            mtime: number;
            tags: string[];
            aliases: string[];
            headings: components["schemas"]["NoteHeading"][];
            links: components["schemas"]["NoteLink"][];
            backlinks: components["schemas"]["BackLink"][];
            problems: string[];
            is_note: boolean;
        };
        /**
         * NoteProblem
         * @description A problem in a note; or, with `meaning` set, a link that was decided: several files have its
         *         name, and `meaning` is the nearest. `candidates` lists all of them.
         */
        NoteProblem: {
            path: string;
            what: string;
            detail: string;
            /** @default  */
            meaning: string;
            /** @default  */
            nearness: string;
            /** @default [] */
            candidates: string[];
        };
        /**
         * NoteSearchRecord
         * @description A search of notes for a request: the query, the number of notes, the results.
         */
        NoteSearchRecord: {
            query: string;
            searched: number;
            passages: components["schemas"]["FoundPassage"][];
            without_room: number;
            method: string;
        };
        /**
         * OfferedTool
         * @description A tool that can be called. `definition.name` is the model's name for it; `id` is its own
         *         identity, independent of its name; `digest` covers the definition, so a changed description
         *         changes it.
         */
        OfferedTool: {
            id: string;
            definition: components["schemas"]["ToolDefinition"];
            digest: string;
            /**
             * @default required
             * @enum {unknown}
             */
            permission: "free" | "required";
            /**
             * @default always
             * @enum {unknown}
             */
            include: "agent" | "always" | "manual";
            /** @default false */
            of_agent: boolean;
            /** @default  */
            label: string;
            /** @default  */
            about: string;
        };
        /**
         * Ping
         * @description Sent while nothing happens, to show that the connection is alive.
         */
        Ping: {
            /** @enum {unknown} */
            type: "ping";
        };
        /**
         * PinnedRow
         * @description An item that is essential and named with every question.
         */
        PinnedRow: {
            item: string;
            label: string;
        };
        /**
         * PlannedCall
         * @description A call of a plan, and its outcome.
         */
        PlannedCall: {
            name: string;
            arguments: string;
            outcome: string;
        };
        /**
         * Position
         * @description Where the session continues. `text` is the question at that place, to be asked again.
         */
        Position: {
            entry: string;
            text: string;
            leaf: string;
        };
        /**
         * PreviewBody
         * @description The message as typed so far.
         */
        PreviewBody: {
            /** @default  */
            text: string;
            /** @default [] */
            attach: string[];
            /** @default [] */
            essential: string[];
            /** @default null */
            target: string | null;
        };
        /**
         * PricePeriod
         * @description A model's prices from a given day on; the first period has no start.
         */
        PricePeriod: {
            /** @default  */
            since: string;
            tiers: components["schemas"]["PriceTier"][];
        };
        /**
         * PriceTier
         * @description Prices per million tokens, for prompts of more than `above` tokens.
         */
        PriceTier: {
            /** @default 0 */
            above: number;
            input: number;
            output: number;
            read: number;
            write: number;
            write_long: number;
        };
        /**
         * Prices
         * @description A model's prices by prompt length, their source, and their date.
         */
        Prices: {
            tiers: components["schemas"]["PriceTier"][];
            /** @default 0 */
            storage: number;
            /** @default  */
            source: string;
            /** @default  */
            date: string;
        };
        /**
         * Problem
         * @description A problem in an agent file. After a `warning` everything still works; after an `error` the
         *         named part could not be used as written.
         */
        Problem: {
            path: string;
            problem: string;
            /** @default null */
            line: number | null;
            /**
             * @default error
             * @enum {unknown}
             */
            level: "error" | "warning";
        };
        /**
         * PromptProgress
         * @description The model is reading the prompt.
         */
        PromptProgress: {
            /** @enum {unknown} */
            type: "reading";
            done: number;
            total: number;
            /** @default 0 */
            cached: number;
        };
        /**
         * ReadFiles
         * @description The files that were examined.
         */
        ReadFiles: {
            /** @default 0 */
            files: number;
            /** @default 0 */
            bytes: number;
            /** @default {} */
            sources: {
                [key: string]: number;
            };
            /** @default 0 */
            sessions: number;
            /** @default 0 */
            requests: number;
            /** @default null */
            newest: number | null;
            /** @default [] */
            paths: string[];
            /** @default [] */
            problems: components["schemas"]["FileProblem"][];
            /** @default 0 */
            problem_count: number;
        };
        /**
         * ReasonRow
         * @description A reason as a page shows it. `place` stands before its name: its priority in three digits, or
         *         the server of a tool; `badge` says how it was included, such as `Agent - 0.87`. `is_new` says
         *         that the previous request did not have it.
         */
        ReasonRow: {
            item: string;
            name: string;
            /** @enum {unknown} */
            include: "agent" | "always" | "manual";
            placement: string;
            /** @default 0 */
            tokens: number;
            /** @default null */
            level: number | null;
            /** @default  */
            server: string;
            /** @default  */
            about: string;
            /** @default null */
            score: number | null;
            /** @default  */
            origin: string;
            /** @default  */
            source: string;
            /** @default [] */
            notes: string[];
            place: string;
            badge: string;
            pinned: boolean;
            is_new: boolean;
        };
        /**
         * RemovedModel
         * @description A removed model, and the bytes freed.
         */
        RemovedModel: {
            name: string;
            freed: number;
        };
        /** RenamedSession */
        RenamedSession: {
            name: string;
        };
        /**
         * RepeatedAnswer
         * @description An answer to generate again; by default the last.
         */
        RepeatedAnswer: {
            /** @default null */
            answer: string | null;
            /** @default null */
            target: string | null;
        };
        /** ReportTotals */
        ReportTotals: {
            /** @default 0 */
            sessions: number;
            /** @default 0 */
            requests: number;
            /** @default 0 */
            input: number;
            /** @default 0 */
            read: number;
            /** @default 0 */
            written: number;
            /** @default 0 */
            input_cost: number | null;
            /** @default 0 */
            output_cost: number | null;
            /** @default 0 */
            unpriced: number;
            /** @default [] */
            unpriced_models: string[];
            /** @default 0 */
            unreported: number;
            /** @default 0 */
            findings: number;
            /** @default 0 */
            muted: number;
            /** @default 0 */
            lost: number;
            /** @default 0 */
            lost_cost: number | null;
            /** @default 0 */
            avoidable_cost: number | null;
            /** @default 0 */
            unpriced_findings: number;
            /** @default 0 */
            located: number;
            /** @default null */
            hour_gain: number | null;
        };
        /**
         * RequestAnatomy
         * @description A request with everything it consists of. `proven` says that every byte matches the record;
         *         `problems` why not. `previous` and `next` are its neighbours on the active path.
         */
        RequestAnatomy: {
            session: string;
            of: number;
            request: components["schemas"]["RequestSummary"];
            previous: string;
            next: string;
            wire: string;
            promotion: string;
            window: number;
            reserve: number;
            free: number;
            tokens: number;
            cached: number | null;
            agree: number;
            layers: components["schemas"]["LayerShare"][];
            segments: components["schemas"]["SegmentRow"][];
            gone: components["schemas"]["GoneSegment"][];
            context: components["schemas"]["RequestContext"];
            options: Record<string, never>;
            citations: number[];
            warnings: string[];
            displays: components["schemas"]["HookDisplay"][];
            proven: boolean;
            problems: string[];
            damage: components["schemas"]["Damage"][];
        };
        /**
         * RequestCheck
         * @description One request, rebuilt. `problem` is empty if nothing differs from the record; `uncovered` are
         *         the parts that the record cannot prove.
         */
        RequestCheck: {
            request: string;
            target: string;
            /** @default 0 */
            segments: number;
            /** @default 0 */
            tokens: number;
            /** @default  */
            problem: string;
            /** @default [] */
            uncovered: components["schemas"]["UncoveredPart"][];
        };
        /**
         * RequestContext
         * @description The origin of one request's content, with reasons; also what was left out, and how far the
         *         request agrees with the previous one.
         */
        RequestContext: {
            target: string;
            /** @default [] */
            items: components["schemas"]["ContextItem"][];
            /** @default [] */
            tools: components["schemas"]["ContextTool"][];
            /** @default null */
            allowed_tools: string[] | null;
            /** @default [] */
            left_out: components["schemas"]["LeftOut"][];
            /** @default [] */
            boundaries: components["schemas"]["Boundary"][];
            /**
             * @default {
             *       "first": true
             *     }
             */
            agreement: components["schemas"]["Agreement"];
            /** @default null */
            warm: components["schemas"]["WarmStart"] | null;
            /**
             * @default {
             *       "window": 0,
             *       "reserve": 0,
             *       "tokens": 0
             *     }
             */
            fit: components["schemas"]["Fit"];
            /** @default null */
            history_price: components["schemas"]["HistoryPrice"] | null;
            /** @default [] */
            warnings: string[];
        };
        /**
         * RequestDifference
         * @description What changed between two requests. `again` counts tokens that both have and that are
         *         processed again, `price` is their extra cost over reading them from the cache, None if
         *         unknown.
         */
        RequestDifference: {
            before: components["schemas"]["RequestSummary"];
            after: components["schemas"]["RequestSummary"];
            is_base: boolean;
            same_target: boolean;
            agree: number;
            of: number;
            again: number;
            price: number | null;
            moved: components["schemas"]["MovedByte"] | null;
            movers: components["schemas"]["Mover"][];
            reason: string;
            cause: ("below_minimum" | "boundary" | "clock" | "compaction" | "fan_out" | "first_message" | "gateway" | "history_edited" | "idle" | "image" | "key_order" | "look_back" | "marker" | "model" | "other_machine" | "parameter" | "rewound" | "system_changed" | "thinking" | "tools_changed" | "tools_reordered" | "trimmed" | "unexplained" | "update" | "whitespace") | null;
            kind: ("expected" | "expired" | "missed" | "moved") | null;
            blame: ("nobody" | "tool" | "vendor" | "you") | null;
            words: string;
            fix: string;
            lines: components["schemas"]["DifferenceLine"][];
            is_cut: boolean;
            segments: components["schemas"]["ComparedSegment"][];
            boundaries: string[];
            problems: string[];
        };
        /**
         * RequestFigures
         * @description One request as a row: what it read, wrote, cost and lost.
         */
        RequestFigures: {
            number: number;
            id: string;
            at: number | null;
            source: string;
            session: string;
            agent: string;
            model: string;
            step: string;
            input: number;
            read: number | null;
            written: number | null;
            output: number;
            lost: number;
            cost: number | null;
            input_cost: number | null;
            /** @default null */
            finding: string | null;
        };
        /**
         * RequestPreview
         * @description What would be sent. `cached` is how many tokens a provider should find in its cache, `new`
         *         the rest; both are None if unknown. `refusal` says why it would not be sent; the other fields
         *         are then filled as far as known. For a planned question (`only_plan`) this is the request for
         *         the plan.
         */
        RequestPreview: {
            target: string;
            tokens: number;
            window: number;
            reserve: number;
            exact: boolean;
            layers: components["schemas"]["LayerSize"][];
            items: components["schemas"]["ContextItem"][];
            tools: components["schemas"]["ContextTool"][];
            left_out: components["schemas"]["LeftOut"][];
            cached: number | null;
            new: number | null;
            cost_range: components["schemas"]["CostRange"] | null;
            rewrite: components["schemas"]["CacheRewrite"] | null;
            agreement: components["schemas"]["Agreement"];
            boundaries: components["schemas"]["Boundary"][];
            warnings: string[];
            segments: components["schemas"]["SegmentView"][];
            digest: string;
            only_plan: boolean;
            refusal: string;
            leaf: string;
        };
        /**
         * RequestRetried
         * @description The request is sent again, made smaller; anything streamed for it before is void.
         */
        RequestRetried: {
            /** @enum {unknown} */
            type: "retry";
            reason: string;
        };
        /**
         * RequestStarted
         * @description A request is about to be sent; `request` is its id in the journal.
         */
        RequestStarted: {
            /** @enum {unknown} */
            type: "request";
            request: string;
            target: string;
            context: components["schemas"]["RequestContext"];
            layers: components["schemas"]["LayerSize"][];
        };
        /**
         * RequestSummary
         * @description One request. `step` says whether it adds a question or tool results; `question` and `answer`
         *         are their entries. `agree` counts tokens that match the previous request, `new` all others, both
         *         by our count; the figures from `input` on come from the provider, None if unreported.
         */
        RequestSummary: {
            number: number;
            id: string;
            at: number;
            target: string;
            active: boolean;
            open: boolean;
            interrupted: boolean;
            retry: boolean;
            step: string;
            question: string;
            question_text: string;
            answer: string;
            stop: string;
            base: string;
            base_number: number | null;
            tokens: number;
            agree: number;
            new: number;
            input: number | null;
            cached: number | null;
            written: number | null;
            output: number | null;
            cost: number | null;
            verdict: components["schemas"]["CacheVerdict"] | null;
            meaning: string;
            marks: string[];
        };
        /**
         * ResultText
         * @description The full result of a tool, including parts that were not sent.
         */
        ResultText: {
            call: string;
            text: string;
            characters: number;
            is_error: boolean;
        };
        /** ResumedTurn */
        ResumedTurn: {
            /** @default null */
            target: string | null;
        };
        /**
         * RunningTurn
         * @description The running turn, or the last one: `next` is the number of its next event.
         */
        RunningTurn: {
            id: string;
            /** @enum {unknown} */
            kind: "compact" | "edit" | "prompt" | "regenerate" | "resume";
            next: number;
            is_running: boolean;
        };
        /**
         * SearchSettings
         * @description The settings of a search. Scores are cosine similarities.
         */
        SearchSettings: {
            /** @default true */
            search: boolean;
            /** @default 20 */
            top_k: number;
            /** @default 5 */
            top_n: number;
            /** @default 0.7 */
            include_score: number;
            /** @default 0.15 */
            floor: number;
            /** @default true */
            gate: boolean;
            /** @default 0 */
            expansion_depth: number;
            /** @default 0.75 */
            expansion_threshold: number;
            /** @default 3 */
            expansion_top_n: number;
            /** @default 5 */
            expansion_chunks: number;
            /** @default false */
            expansion_graph: boolean;
        };
        /**
         * SegmentRow
         * @description A segment as it was sent. `start` is its offset in tokens of the whole request; `kind` is the
         *         type of its content; `content` contains non-text content such as a tool's definition.
         *         `first_number` is the first request with these bytes, `since_number` the request since which
         *         they stood at this place. `stays` says that nothing before it changed.
         */
        SegmentRow: {
            index: number;
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            source: string;
            label: string;
            tokens: number;
            digest: string;
            /** @enum {unknown} */
            role: "assistant" | "system" | "tool" | "tools" | "user";
            message: string;
            item: string;
            version: string;
            /** @enum {unknown} */
            kind: "image" | "text" | "thinking" | "tool" | "tool_call" | "tool_result";
            start: number;
            bytes: number;
            text: string;
            content: unknown;
            /** @enum {unknown} */
            state: "agrees" | "cached" | "new" | "unknown";
            cached_tokens: number | null;
            stays: boolean;
            is_lasting: boolean;
            why: string;
            first_request: string;
            first_number: number | null;
            since_request: string;
            since_number: number | null;
            replaced: components["schemas"]["EarlierText"] | null;
        };
        /**
         * SegmentView
         * @description A run of bytes on the wire, identified by its digest.
         */
        SegmentView: {
            /** @enum {unknown} */
            layer: "L1" | "L2" | "L3" | "L4" | "L5" | "tools";
            /** @enum {unknown} */
            role: "assistant" | "system" | "tool" | "tools" | "user";
            source: string;
            tokens: number;
            cached: boolean;
            digest: string;
        };
        /**
         * SentMessage
         * @description A message sent while a turn runs: with its next request, or after its answer.
         */
        SentMessage: {
            text: string;
            /**
             * @default steer
             * @enum {unknown}
             */
            deliver: "follow_up" | "steer";
        };
        /**
         * SentRequests
         * @description All requests of a session in the order written, on every branch. `lost` are unreadable
         *         requests whose replies exist.
         */
        SentRequests: {
            requests: components["schemas"]["RequestSummary"][];
            lost: string[];
            damage: components["schemas"]["Damage"][];
        };
        /**
         * ServerEntry
         * @description A server of an agent: its address and terms, without its keys.
         */
        ServerEntry: {
            name: string;
            command: string;
            url: string;
            permission: string;
            include: string;
            disabled: boolean;
            tools: components["schemas"]["ToolTerms"][];
        };
        /**
         * SessionCard
         * @description One session in a list. `cost` is None if no price is known; `unpriced` counts requests that
         *         it excludes. `cached_share` is None if nothing was reported.
         */
        SessionCard: {
            session: string;
            name: string;
            /** @enum {unknown} */
            state: "idle" | "interrupted" | "unreadable" | "waiting" | "working";
            turn: string | null;
            messages: number;
            usage: components["schemas"]["Usage"];
            cached_share: number | null;
            cost: number | null;
            unpriced: number;
            bytes: number;
            written: number;
            damage: number;
            problem: string;
        };
        /**
         * SessionCheck
         * @description Whether a session is intact, for a page: `rebuilt` of `requests` match what was sent to the
         *         byte; `wrong` counts the others that are known to differ.
         */
        SessionCheck: {
            session: string;
            state: string;
            sound: boolean;
            requests: number;
            rebuilt: number;
            wrong: components["schemas"]["RequestCheck"][];
            uncovered: components["schemas"]["UncoveredRequests"][];
            problems: string[];
            damage: components["schemas"]["Damage"][];
            seconds: number;
        };
        /**
         * SessionCreated
         * @description The new session; `notices` are for the person.
         */
        SessionCreated: {
            session: string;
            notices: string[];
        };
        /**
         * SessionHead
         * @description Everything shown at the top of a session. `title` is its name, or its first question. `rows`
         *         counts messages of the active path, `other_rows` those on other branches. `busy_elsewhere` says
         *         that another program has it open: it can be read but not continued.
         */
        SessionHead: {
            session: string;
            workspace: string;
            name: string;
            title: string;
            target: string;
            /** @enum {unknown} */
            mode: "agent" | "plan" | "qa";
            files: boolean;
            web: string | null;
            agent: string;
            project: string | null;
            window: number;
            /** @enum {unknown} */
            state: "idle" | "interrupted" | "unreadable" | "waiting" | "working";
            interrupted: boolean;
            busy_elsewhere: boolean;
            waiting: components["schemas"]["CallView"][];
            turn: components["schemas"]["RunningTurn"] | null;
            leaf: string;
            rows: number;
            other_rows: number;
            began: number;
            forked_from: string;
            source: string;
            damage: components["schemas"]["Damage"][];
        };
        /**
         * SessionNews
         * @description A change in the state of a session or of its last turn.
         */
        SessionNews: {
            session: string;
            /** @enum {unknown} */
            state: "idle" | "interrupted" | "unreadable" | "waiting" | "working";
            turn: string | null;
        };
        /**
         * SessionPage
         * @description A page of sessions, most recently written first. `after` is the cursor of the next page, if
         *         any; `total` counts all matching sessions.
         */
        SessionPage: {
            sessions: components["schemas"]["SessionCard"][];
            total: number;
            after: string | null;
        };
        /**
         * SessionSpending
         * @description A session's cost from its own journal, and from the account. `cost` sums known costs;
         *         `unpriced` requests are not in it. `waiting` is reserved for answers that are still
         *         pending.
         */
        SessionSpending: {
            session: string;
            cost: number | null;
            unpriced: number;
            rows: components["schemas"]["SpendRow"][];
            total: components["schemas"]["SpendRow"];
            waiting: components["schemas"]["SpendEntry"][];
            limit_session: number | null;
            limit_day: number | null;
        };
        /** SessionSum */
        SessionSum: {
            session: string;
            source: string;
            requests: number;
            input: number;
            input_cost: number | null;
            lost: number;
            lost_cost: number | null;
        };
        /**
         * SettingRow
         * @description One setting: its value, default, allowed values, and description. A setting with parts offers
         *         presets, and each of its parts is a row of its own, such as `guide_search.top_n`.
         */
        SettingRow: {
            name: string;
            group: string;
            /** @enum {unknown} */
            kind: "boolean" | "choice" | "integer" | "number" | "text" | "texts";
            value: unknown;
            default: unknown;
            choices: string[];
            nullable: boolean;
            help: string;
        };
        /** SettingRows */
        SettingRows: {
            settings: components["schemas"]["SettingRow"][];
        };
        /**
         * SkillEntry
         * @description A skill; one that models may not choose is added by hand.
         */
        SkillEntry: {
            name: string;
            description: string;
            folder: string;
            model_invocable: boolean;
        };
        /**
         * SourceRow
         * @description A passage that an answer cites as `[^number]`. `place` is its lines; `excerpt` is the
         *         passage's current text, empty if it no longer exists.
         */
        SourceRow: {
            number: number;
            path: string;
            title: string;
            heading: string;
            link: string;
            place: string;
            start: number;
            end: number;
            excerpt: string;
        };
        /**
         * SpendEntry
         * @description One request in the account, and its outcome. `ended` is the time it ended, if it did.
         */
        SpendEntry: {
            id: string;
            at: number;
            day: string;
            session: string;
            target: string;
            /**
             * @default answer
             * @enum {unknown}
             */
            purpose: "answer" | "cache" | "plan" | "storage" | "summary";
            /**
             * @default open
             * @enum {unknown}
             */
            state: "cleared" | "open" | "released" | "settled";
            /** @default null */
            low: number | null;
            /** @default null */
            high: number | null;
            /** @default null */
            cost: number | null;
            /** @default null */
            usage: components["schemas"]["Usage"] | null;
            /** @default null */
            ended: number | null;
        };
        /**
         * SpendReport
         * @description Spending since a day, grouped; and every pending reservation, however old.
         */
        SpendReport: {
            /** @enum {unknown} */
            by: "day" | "model" | "session";
            since: string;
            rows: components["schemas"]["SpendRow"][];
            total: components["schemas"]["SpendRow"];
            waiting: components["schemas"]["SpendEntry"][];
            reserved: number;
            /** @default [] */
            damage: string[];
        };
        /**
         * SpendRow
         * @description The combined cost of requests. `spent` sums known costs, None if none is known; `assumed`
         *         sums upper limits for answers without reported usage; `unpriced` counts requests in neither
         *         sum.
         */
        SpendRow: {
            name: string;
            /** @default 0 */
            requests: number;
            /** @default null */
            spent: number | null;
            /** @default 0 */
            assumed: number;
            /** @default 0 */
            unpriced: number;
            /** @default 0 */
            input: number;
            /** @default 0 */
            cached: number;
            /** @default 0 */
            output: number;
        };
        /**
         * SpendingPage
         * @description A report with what its sums exclude, in words, and the daily limit if there is one. `names`
         *         are the titles of the sessions in its rows, where known.
         */
        SpendingPage: {
            report: components["schemas"]["SpendReport"];
            left_out: string[];
            day_limit: number | null;
            spent_today: number | null;
            names: {
                [key: string]: string;
            };
        };
        /**
         * SummaryStep
         * @description A part of history is being summarized, because all of it is too long for one summary.
         */
        SummaryStep: {
            /** @enum {unknown} */
            type: "summary";
            step: number;
            of: number;
        };
        /**
         * TargetChoice
         * @description A target, and whether it is available: `missing` says what is missing, `missing_code` is the
         *         code of that error. A family stands for every model whose name begins with its name.
         */
        TargetChoice: {
            target: components["schemas"]["TargetRow"];
            provider: string;
            price: string;
            missing: string;
            missing_code: string;
            is_family: boolean;
        };
        /**
         * TargetRow
         * @description One target. Without `prices` its cost is unknown; without `limits_source` its limits are the
         *         defaults assumed for any model of its provider.
         */
        TargetRow: {
            target: string;
            prices: components["schemas"]["Prices"] | null;
            later: components["schemas"]["PricePeriod"][];
            window: number;
            max_input: number | null;
            max_output: number;
            limits_source: string;
            minimum: number;
            step: number;
            lifetime_s: number | null;
            long_lifetime_s: number | null;
            explicit: boolean;
            exact_tokens: boolean;
        };
        /**
         * TimelineBreak
         * @description Why a cache did not hit, by cause. `tokens` could have been read but were not; `price` is the
         *         extra cost over reading them, None if unknown.
         */
        TimelineBreak: {
            /** @enum {unknown} */
            kind: "expected" | "expired" | "missed" | "moved";
            /** @enum {unknown} */
            blame: "nobody" | "tool" | "vendor" | "you";
            /** @enum {unknown} */
            certainty: "likely" | "located" | "proven" | "unknown";
            /** @enum {unknown} */
            cause: "below_minimum" | "boundary" | "clock" | "compaction" | "fan_out" | "first_message" | "gateway" | "history_edited" | "idle" | "image" | "key_order" | "look_back" | "marker" | "model" | "other_machine" | "parameter" | "rewound" | "system_changed" | "thinking" | "tools_changed" | "tools_reordered" | "trimmed" | "unexplained" | "update" | "whitespace";
            label: string;
            words: string;
            tokens: number;
            price: number | null;
            fix: string;
        };
        /**
         * TimelineRow
         * @description One request. `purpose` is `turn`, or that of a request outside the turns (`plan`, `summary`)
         *         or of an imported answer; these have no `request`. `fresh` is input minus cached. Figures are
         *         None if an `answered` request came without them. `saved` is the cache's net saving, None if
         *         unknown. `seconds` is how long the request took, `idle` the time since the previous one.
         */
        TimelineRow: {
            id: string;
            /** @enum {unknown} */
            purpose: "cache" | "imported" | "plan" | "storage" | "summary" | "turn";
            at: number;
            target: string;
            request: components["schemas"]["RequestSummary"] | null;
            answered: boolean;
            tokens: number | null;
            input: number | null;
            cached: number | null;
            fresh: number | null;
            written: number | null;
            output: number | null;
            cost: number | null;
            uncached_cost: number | null;
            saved: number | null;
            seconds: number | null;
            idle: number | null;
            boundaries: components["schemas"]["Boundary"][];
            broke: components["schemas"]["TimelineBreak"] | null;
        };
        /**
         * TimelineTotals
         * @description All requests together, on every branch, since all were paid for. `hit` is None if no provider
         *         reported its cache; it covers `reported` requests, not the `unknown` answered ones; `unanswered`
         *         have no figures at all.
         */
        TimelineTotals: {
            requests: number;
            reported: number;
            unknown: number;
            unanswered: number;
            input: number;
            cached: number;
            written: number;
            output: number;
            reported_input: number;
            hit: number | null;
            cost: number | null;
            unpriced: number;
            saved: number | null;
            read_discount: number | null;
            write_premium: number | null;
            breaks: components["schemas"]["BreakSum"][];
        };
        /**
         * ToolCall
         * @description A tool call by the model. `arguments` is the JSON text exactly as the model wrote it, because
         *         sent bytes must not move.
         */
        ToolCall: {
            /** @enum {unknown} */
            type: "tool_call";
            id: string;
            name: string;
            /** @default {} */
            arguments: string;
            /** @default  */
            signature: string;
        };
        /**
         * ToolDefinition
         * @description A tool as the model sees it; serializable, matched to an implementation by name.
         *
         *         Keys of the schema are sorted: a journal that is read back must produce the same bytes.
         */
        ToolDefinition: {
            name: string;
            /** @default  */
            description: string;
            /** @default {} */
            parameters: Record<string, never>;
        };
        /**
         * ToolFinished
         * @description A tool has run; `result` is sent to the model.
         */
        ToolFinished: {
            /** @enum {unknown} */
            type: "tool_result";
            result: components["schemas"]["ToolResult"];
            /** @default 0 */
            seconds: number;
        };
        /**
         * ToolResult
         * @description The result of a call, as text for the model.
         */
        ToolResult: {
            /** @enum {unknown} */
            type: "tool_result";
            call_id: string;
            name: string;
            text: string;
            /** @default false */
            is_error: boolean;
        };
        /**
         * ToolStarted
         * @description A tool is about to run.
         */
        ToolStarted: {
            /** @enum {unknown} */
            type: "tool_call";
            call: components["schemas"]["ToolCall"];
            /** @default  */
            label: string;
        };
        /**
         * ToolTerms
         * @description The terms for one tool of a server.
         */
        ToolTerms: {
            name: string;
            permission: string;
            include: string;
            disabled: boolean;
        };
        /**
         * TriedKey
         * @description A key to test before it is stored; empty for the stored one.
         */
        TriedKey: {
            /** @default  */
            key: string;
        };
        /**
         * TriedQuestion
         * @description A question; without a preset the agent's own settings apply.
         */
        TriedQuestion: {
            question: string;
            /** @default null */
            preset: ("aggressive" | "conservative" | "normal") | null;
        };
        /**
         * TrustPage
         * @description What a person is shown before they trust a folder: `lines` is all of it, `digest` identifies
         *         it when trust is given, `changes` lists differences from what they trusted before.
         */
        TrustPage: {
            place: string;
            /** @enum {unknown} */
            standing: "changed" | "given" | "new" | "nothing" | "own" | "recorded" | "unknown";
            counts: boolean;
            can_be_kept: boolean;
            digest: string;
            servers: string[];
            hooks: string[];
            model: string;
            settings: string[];
            lines: string[];
            changes: string[];
            problem: string;
            notice: string;
        };
        /**
         * TurnBegun
         * @description The turn that was started; `turns/{turn}/events` streams its events.
         */
        TurnBegun: {
            turn: string;
        };
        /**
         * TurnEnded
         * @description The turn has ended, and why; always the last event.
         */
        TurnEnded: {
            /** @enum {unknown} */
            type: "end";
            /** @enum {unknown} */
            ending: "aborted" | "answered" | "called" | "limit" | "waiting";
            answer: string;
            /** @default 1 */
            requests: number;
        };
        /**
         * TurnFailed
         * @description The turn ended without an answer; if present, always the last event.
         */
        TurnFailed: {
            /** @enum {unknown} */
            type: "failed";
            code: string;
            message: string;
        };
        /**
         * UncoveredPart
         * @description A part of a request that cannot be proven, and why.
         */
        UncoveredPart: {
            /** @enum {unknown} */
            part: "parameters" | "target" | "texts" | "wire";
            why: string;
        };
        /**
         * UncoveredRequests
         * @description A part that cannot be proven, and the number of requests with it.
         */
        UncoveredRequests: {
            /** @enum {unknown} */
            part: "parameters" | "target" | "texts" | "wire";
            why: string;
            requests: number;
        };
        /**
         * Unknown
         * @description Something missing from the record, and the kind of record that would show it.
         */
        Unknown: {
            what: string;
            record: string;
        };
        /**
         * UnreadSession
         * @description A session that could not be read in full. `counted` means that the rest was counted.
         */
        UnreadSession: {
            session: string;
            problem: string;
            counted: boolean;
        };
        /**
         * UploadedFile
         * @description An uploaded file: its name is shown, and never used as a path.
         */
        UploadedFile: {
            name: string;
            content: string;
            /**
             * @default utf-8
             * @enum {unknown}
             */
            encoding: "base64" | "utf-8";
        };
        /**
         * Usage
         * @description A provider's token counts. `input` includes cached tokens.
         */
        Usage: {
            /** @default 0 */
            input: number;
            /** @default 0 */
            cached: number;
            /** @default 0 */
            written: number;
            /** @default 0 */
            output: number;
            /** @default 0 */
            written_long: number;
            /** @default true */
            cache_reported: boolean;
            /** @default 0 */
            explicit: number;
        };
        /** UsageReport */
        UsageReport: {
            /** @default [] */
            agents: components["schemas"]["AgentUse"][];
            /** @default [] */
            unread: components["schemas"]["UnreadSession"][];
        };
        /**
         * UsageReported
         * @description The cost of a request in tokens and money, and the time until its first word arrived.
         */
        UsageReported: {
            /** @enum {unknown} */
            type: "usage";
            request: string;
            usage: components["schemas"]["Usage"];
            /** @default null */
            verdict: components["schemas"]["CacheVerdict"] | null;
            /** @default null */
            cost: number | null;
            /** @default null */
            first_s: number | null;
            /** @default 0 */
            total_s: number;
        };
        /**
         * WarmStart
         * @description The part of a request that a provider should have in its cache because another session or
         *         branch sent the same beginning at `at`, in tokens as counted here.
         */
        WarmStart: {
            tokens: number;
            at: number;
            /** @enum {unknown} */
            source: "branch" | "session";
        };
        /**
         * WarningIssued
         * @description A warning for a person.
         */
        WarningIssued: {
            /** @enum {unknown} */
            type: "warning";
            text: string;
        };
        /**
         * WireBody
         * @description A request in its vendor's form, and why it may differ from what was sent.
         */
        WireBody: {
            request: string;
            target: string;
            wire: string;
            body: unknown;
            problems: string[];
        };
        /**
         * WorkspaceRow
         * @description One chosen folder. A folder that no longer exists has no number of sessions.
         */
        WorkspaceRow: {
            id: string;
            name: string;
            path: string;
            is_there: boolean;
            sessions: number | null;
        };
        /**
         * WorkspaceRows
         * @description All chosen folders, most recently opened first.
         */
        WorkspaceRows: {
            workspaces: components["schemas"]["WorkspaceRow"][];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    get_workspaces_by_workspace_agents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists the agents of the user and of the workspace. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentList"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_agents: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewAgent"];
            };
        };
        responses: {
            /** @description Creates a new agent as a starting point. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_agents_by_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows an agent: persona, rules, references, tools, memory, files and problems. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_agents_by_agent_files_by_path: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Reads a file of the agent, with its etag. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentFile"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    put_workspaces_by_workspace_agents_by_agent_files_by_path: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
                path: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewFileText"];
            };
        };
        responses: {
            /** @description Writes a file of the agent, if it has not changed since. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentFile"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_workspaces_by_workspace_agents_by_agent_files_by_path: {
        parameters: {
            query: {
                etag: string;
            };
            header?: never;
            path: {
                workspace: string;
                agent: string;
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deletes a rule or a reference, if it has not changed since. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_agents_by_agent_include: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["IncludeChange"];
            };
        };
        responses: {
            /** @description Changes when a rule or a reference is part of requests. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_agents_by_agent_check: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Checks the agent's files for problems. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentCheck"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_agents_by_agent_select: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TriedQuestion"];
            };
        };
        responses: {
            /** @description Shows what a question would select, and near misses. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentChoice"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_agents_by_agent_usage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows how the agent's items were used across its sessions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageReport"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_agents_by_agent_trust: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows what the agent's folder brings, and whether it is trusted. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_agents_by_agent_trust: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["GivenTrust"];
            };
        };
        responses: {
            /** @description Trusts the folder as it was shown. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_workspaces_by_workspace_agents_by_agent_trust: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                agent: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Stops trusting the folder. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TrustPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_fork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ForkBody"];
            };
        };
        responses: {
            /** @description Creates a new session that starts with this one's path. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Forked"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_navigate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NavigateBody"];
            };
        };
        responses: {
            /** @description Continues at another entry. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Position"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    put_workspaces_by_workspace_sessions_by_session_labels_by_entry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                entry: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LabelBody"];
            };
        };
        responses: {
            /** @description Labels an entry. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Labelled"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_doctor: {
        parameters: {
            query?: {
                text?: boolean;
            };
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Reports the session's cache misses, why, and their cost. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_doctor: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DoctorUpload"];
            };
        };
        responses: {
            /** @description Reports on files of any program, which are not stored. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_doctor_machine: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DoctorMachine"];
            };
        };
        responses: {
            /** @description Reports on all sessions of this machine, as a job. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobStarted"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_doctor_sample: {
        parameters: {
            query?: {
                text?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Reports on an invented sample. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DoctorPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_items: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists rules, references and tools: the session's and addable ones; its pins. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ItemRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_items_add: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemName"];
            };
        };
        responses: {
            /** @description Adds a rule, a reference or a tool to the session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_items_remove: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemName"];
            };
        };
        responses: {
            /** @description Removes a rule, a reference or a tool from the session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_items_pin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemName"];
            };
        };
        responses: {
            /** @description Pins an item: essential, and named with every question. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_items_unpin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ItemName"];
            };
        };
        responses: {
            /** @description Removes a pin. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_items_adopt: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Adopts the changes in the files of the session's agent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdoptedRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists all settings, with allowed values and descriptions. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    patch_workspaces_by_workspace_sessions_by_session_settings: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSettings"];
            };
        };
        responses: {
            /** @description Changes settings from the next question on. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettingRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_jobs: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists running and recent jobs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_jobs_by_job_events: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Streams a job's progress: `progress`, and finally `end` or `failed`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["JobProgress"] | components["schemas"]["JobEnd"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_jobs_by_job: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                job: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Stops a job. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_memory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows the memory for every session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryText"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    put_memory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewMemory"];
            };
        };
        responses: {
            /** @description Writes the memory, if it has not changed since. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MemoryText"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_targets: {
        parameters: {
            query?: {
                q?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists targets for questions, with prices and windows. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KnownTargets"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_models: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists the models that run on this machine, or could. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LocalModelList"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_models_by_name_fetch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Downloads a model, as a job. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobStarted"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_models_by_name: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removes a model from this machine. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RemovedModel"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_keys: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists which providers have a key, and where; never the keys. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    put_keys_by_provider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewKey"];
            };
        };
        responses: {
            /** @description Stores a key in the system's keyring. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_keys_by_provider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Removes a key from the system's keyring. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyList"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_keys_by_provider_try: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                provider: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TriedKey"];
            };
        };
        responses: {
            /** @description Tests a key with a free call. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeyTrial"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_messages: {
        parameters: {
            query?: {
                from?: number | null;
                limit?: number;
                around?: string;
            };
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Returns rows of the active path; without `from` and `around`, the last ones. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessageWindow"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_messages: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SentMessage"];
            };
        };
        responses: {
            /** @description Sends a message while a turn runs. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessageTaken"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_find: {
        parameters: {
            query: {
                q: string;
                limit?: number;
            };
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Finds rows of the active path that contain given words. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FoundRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_results_by_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                call: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Returns a tool's full result, including what was not sent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResultText"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_notes: {
        parameters: {
            query?: {
                q?: string;
                in?: string;
                tag?: string;
                since?: string;
                limit?: number;
                words?: boolean;
            };
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Finds matching passages in notes, with scores. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NoteHits"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_notes_by_path: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Returns a note with its headings, links and backlinks. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotePage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_notes_check: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Checks the notes for broken links and other problems. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NoteCheck"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_complete: {
        parameters: {
            query?: {
                q?: string;
                agent?: string;
                limit?: number;
            };
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Completes an @ mention. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Completions"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_index: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Indexes all notes for search by meaning, as a job. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["JobStarted"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_files_by_path: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                path: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Returns a file; pictures are shown, other files downloaded. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_preview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PreviewBody"];
            };
        };
        responses: {
            /** @description Previews what a message would send, digest for digest. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestPreview"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_preview: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPreview"];
            };
        };
        responses: {
            /** @description Previews the first message of a new session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestPreview"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_requests: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists every request of the session, on every branch. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SentRequests"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_requests_by_request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                request: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows a request: its layers, and every segment with the text sent. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestAnatomy"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_requests_by_request_wire: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                request: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows a request in its vendor's own form. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WireBody"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_requests_by_before_difference_by_after: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                before: string;
                after: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Compares two requests: the first byte that moved, why, and the cost. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestDifference"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_context_by_request: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                request: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows the context of a request, and why each item was included. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ContextRecord"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_timeline: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows every request with its cache use, and every priced break. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CacheTimeline"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_tree: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows the branches of the session as a map. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BranchMap"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_verify: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Verifies that every request can be rebuilt byte for byte. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionCheck"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions: {
        parameters: {
            query?: {
                q?: string;
                limit?: number;
                after?: string;
            };
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists the sessions of a workspace, most recently written first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewSession"];
            };
        };
        responses: {
            /** @description Starts a session. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionCreated"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows a session's state: its target, its turn, what waits. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionHead"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_workspaces_by_workspace_sessions_by_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deletes a session and everything only it uses. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedRow"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    patch_workspaces_by_workspace_sessions_by_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenamedSession"];
            };
        };
        responses: {
            /** @description Renames a session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionHead"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_events: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Streams changes of sessions' states: `session` and `ping`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["SessionNews"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_spending: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows what the session cost, and what is reserved for it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionSpending"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_spending: {
        parameters: {
            query?: {
                by?: "day" | "model" | "session";
                since?: string;
                all?: boolean;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Shows spending by day, model or session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SpendingPage"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_import: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewImport"];
            };
        };
        responses: {
            /** @description Imports another program's file as a session. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportedRow"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_export: {
        parameters: {
            query?: {
                form?: "json" | "jsonl" | "markdown" | "requests";
            };
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Exports the session as a file. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_blobs_by_digest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                digest: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Returns a picture of the session. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/octet-stream": string;
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_turns: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTurn"];
            };
        };
        responses: {
            /** @description Asks a question. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnBegun"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_edit: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EditedQuestion"];
            };
        };
        responses: {
            /** @description Edits an earlier question on a new branch. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnBegun"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_regenerate: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RepeatedAnswer"];
            };
        };
        responses: {
            /** @description Generates an answer again on a new branch. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnBegun"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_resume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ResumedTurn"];
            };
        };
        responses: {
            /** @description Continues an interrupted turn. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnBegun"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_compact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Replaces older history with a summary. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnBegun"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces_by_workspace_sessions_by_session_turns_by_turn_events: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                turn: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Streams a turn's numbered events, from Last-Event-ID on. Ends with `end` or `failed`. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["RequestStarted"] | components["schemas"]["HookShown"] | components["schemas"]["PromptProgress"] | components["schemas"]["BlockStarted"] | components["schemas"]["BlockDelta"] | components["schemas"]["BlockEnded"] | components["schemas"]["AnswerHeld"] | components["schemas"]["AnswerChanged"] | components["schemas"]["ToolStarted"] | components["schemas"]["ToolFinished"] | components["schemas"]["ApprovalWanted"] | components["schemas"]["ApprovalDecided"] | components["schemas"]["UsageReported"] | components["schemas"]["WarningIssued"] | components["schemas"]["SummaryStep"] | components["schemas"]["RequestRetried"] | components["schemas"]["TurnEnded"] | components["schemas"]["CompactionDone"] | components["schemas"]["TurnFailed"] | components["schemas"]["Ping"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_workspaces_by_workspace_sessions_by_session_turns_by_turn: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                turn: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Stops a turn; its partial answer is kept. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Aborted"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces_by_workspace_sessions_by_session_calls_by_call_decision: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
                session: string;
                call: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["DecisionBody"];
            };
        };
        responses: {
            /** @description Decides a waiting call; after the last one, the turn continues. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DecisionKept"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_me: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Describes the caller and this server. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Me"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_workspaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists the workspace folders, most recently opened first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkspaceRows"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    post_workspaces: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWorkspace"];
            };
        };
        responses: {
            /** @description Adds a folder to work in. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WorkspaceRow"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    delete_workspaces_by_workspace: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                workspace: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forgets a folder; its files and sessions stay. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Done"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
    get_folders: {
        parameters: {
            query?: {
                path?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lists the folders in a folder, to choose one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FolderListing"];
                };
            };
            /** @description The request failed; `error.code` is stable. */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ErrorAnswer"];
                };
            };
        };
    };
}
